"""pytorchexample: model, data and training."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """A small network."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.norm = nn.GroupNorm(4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(functional.dropout(functional.relu(self.norm(self.fc1(x))), 0.1, self.training))


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = load_digits(return_X_y=True)
    return torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)


def load_data(partition_id: int, num_partitions: int, batch_size: int) -> tuple[DataLoader, DataLoader]:
    """Load partition data."""
    x, y = digits()
    mine = torch.arange(len(x) * 4 // 5)[partition_id::num_partitions]
    cut = len(mine) * 4 // 5
    train, test = mine[:cut], mine[cut:]
    trainloader = DataLoader(TensorDataset(x[train], y[train]), batch_size=batch_size, shuffle=True)
    return trainloader, DataLoader(TensorDataset(x[test], y[test]), batch_size=batch_size)


def load_centralized_dataset() -> DataLoader:
    """Load the test set."""
    x, y = digits()
    held_out = slice(len(x) * 4 // 5, None)
    return DataLoader(TensorDataset(x[held_out], y[held_out]), batch_size=128)


def num_examples(partition_id: int, num_partitions: int) -> int:
    """Return how many examples a client trains on."""
    return len(load_data(partition_id, num_partitions, 32)[0].dataset)


def train(net: nn.Module, trainloader: DataLoader, epochs: int, lr: float, device: torch.device) -> float:
    """Train the model on the training set."""
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    net.train()
    running_loss = 0.0
    for _ in range(epochs):
        for images, labels in trainloader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
    return running_loss / (epochs * len(trainloader))


def test(net: nn.Module, testloader: DataLoader, device: torch.device) -> tuple[float, float]:
    """Validate the model on the test set."""
    net.to(device)
    net.eval()
    correct, loss, count = 0, 0.0, 0
    with torch.no_grad():
        for images, labels in testloader:
            outputs = net(images.to(device))
            loss += functional.cross_entropy(outputs, labels.to(device), reduction="sum").item()
            correct += int((outputs.argmax(1) == labels.to(device)).sum())
            count += len(labels)
    return loss / count, correct / count
