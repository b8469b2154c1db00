from .found import (
    MARGIN_BINS as MARGIN_BINS,
)
from .found import (
    Boosted as Boosted,
)
from .found import (
    Drawn as Drawn,
)
from .found import (
    DrawnMember as DrawnMember,
)
from .found import (
    margin_edges as margin_edges,
)
from .found import (
    mass_unit as mass_unit,
)
from .members import (
    Members as Members,
)
from .members import (
    bounded_losses as bounded_losses,
)
from .members import (
    bounded_masses as bounded_masses,
)
from .members import (
    code_dtype as code_dtype,
)
from .members import (
    vote_margins as vote_margins,
)
from .step import BoostingStep as BoostingStep
from .votes import CalibratedVotes as CalibratedVotes
from .votes import Votes as Votes
