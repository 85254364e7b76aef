from flgo.algorithm.fedasync import Server

server = object.__new__(Server)
server.flag, server.hinge_a, server.hinge_b = "hinge", 10, 4
print(server.s(6))  # the paper: 1/(10 (6 − 4) + 1) = 1/21
