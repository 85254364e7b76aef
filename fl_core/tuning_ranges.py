"""Default ranges of learning rates for `asyncfl tune`, which a suite may replace by `tuning.space`.

Strategies and server optimisers name them in their fields; further ranges are the `Tune(...)` of fields in
the modules of strategies.

Fixed: the ends, which are part of the identity of stored studies.
"""

from fl_core.parts import Tune

LOCAL_RATES = Tune(1e-3, 1)  # η_l of the clients
SERVER_RATES = Tune(0.1, 10)  # η_g, added as it is
MOMENTUM_RATES = Tune(0.01, 1)  # η_g with momentum: a steady Δ is followed 1/(1 − β) times as fast
ADAPTIVE_RATES = Tune(1e-3, 1)  # η_g of Adam and its kin
