"""`EngineContract`: every promise in one class."""

from __future__ import annotations

from statestore.conformance.atomicity import AtomicityCases
from statestore.conformance.backups import BackupCases
from statestore.conformance.compacting import CompactingCases
from statestore.conformance.copies import CopyCases
from statestore.conformance.discarding import TrashCases
from statestore.conformance.documents import DocumentCases
from statestore.conformance.fidelity import FidelityCases
from statestore.conformance.fields import FieldCases
from statestore.conformance.grouping import GroupCases
from statestore.conformance.keys import KeyCases
from statestore.conformance.listing import ListingCases
from statestore.conformance.machine import MachineCases
from statestore.conformance.merging import MergingCases
from statestore.conformance.names import NameCases
from statestore.conformance.overtaking import OvertakingCases
from statestore.conformance.paging import PagingCases
from statestore.conformance.parts import PartsCases
from statestore.conformance.pointing import PointCases
from statestore.conformance.preconditions import PreconditionCases
from statestore.conformance.races import RaceCases
from statestore.conformance.records import RecordCases
from statestore.conformance.reopening import ReopeningCases
from statestore.conformance.repairs import RepairCases
from statestore.conformance.searching import SearchCases
from statestore.conformance.several import SeveralCases
from statestore.conformance.users import UserCases
from statestore.conformance.versions import VersionCases
from statestore.conformance.waking import WakeCases
from statestore.conformance.watching import WatchCases


class EngineContract(  # pytest runs the last one first
    MachineCases,
    BackupCases,
    CompactingCases,
    RepairCases,
    GroupCases,
    SeveralCases,
    PointCases,
    WakeCases,
    WatchCases,
    SearchCases,
    ReopeningCases,
    RaceCases,
    OvertakingCases,
    TrashCases,
    UserCases,
    MergingCases,
    PagingCases,
    ListingCases,
    CopyCases,
    FidelityCases,
    FieldCases,
    KeyCases,
    RecordCases,
    VersionCases,
    AtomicityCases,
    PreconditionCases,
    NameCases,
    DocumentCases,
    PartsCases,
):
    """Everything that the store relies on. Subclass it as ``class TestMyEngine(EngineContract)``."""
