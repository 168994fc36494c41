"""All growth layers, in display order: the one list to add a layer to."""

from tenfold.study.grow.layer import Layer
from tenfold.study.grow.layers.budget.lead_time import LeadTimeLayer
from tenfold.study.grow.layers.budget.money import Money
from tenfold.study.grow.layers.building.floor import Floor
from tenfold.study.grow.layers.building.power import PowerBudget, SitePower
from tenfold.study.grow.layers.building.racks import Cooling, RackPower
from tenfold.study.grow.layers.building.switch_ports import SwitchPorts
from tenfold.study.grow.layers.compute.load import Compute
from tenfold.study.grow.layers.compute.serving import Serving
from tenfold.study.grow.layers.compute.step_efficiency import StepEfficiency
from tenfold.study.grow.layers.fabric.site_links import SiteLinks
from tenfold.study.grow.layers.fabric.spine import FabricSpine
from tenfold.study.grow.layers.fabric.uplinks import FabricUplinks
from tenfold.study.grow.layers.jobs.admission import Admission
from tenfold.study.grow.layers.jobs.contention import Contention
from tenfold.study.grow.layers.jobs.failures import Failures
from tenfold.study.grow.layers.jobs.fragmentation import Fragmentation
from tenfold.study.grow.layers.jobs.governance import Governance
from tenfold.study.grow.layers.jobs.queue import Queue
from tenfold.study.grow.layers.storage.capacity import StorageCapacity
from tenfold.study.grow.layers.storage.checkpoint_burst import CheckpointBurst
from tenfold.study.grow.layers.storage.checkpoint_saves import CheckpointSaves
from tenfold.study.grow.layers.storage.read import StorageRead
from tenfold.study.grow.layers.storage.streams import StorageStreams
from tenfold.study.grow.layers.upkeep.monitoring import MonitoringLayer
from tenfold.study.grow.layers.upkeep.operations import OperationsLayer
from tenfold.study.grow.layers.upkeep.spares import Spares

LAYERS: tuple[Layer, ...] = (
    SitePower(),
    PowerBudget(),
    RackPower(),
    Cooling(),
    SwitchPorts(),
    Floor(),
    StorageCapacity(),
    StorageRead(),
    StorageStreams(),
    CheckpointBurst(),
    CheckpointSaves(),
    Compute(),
    StepEfficiency(),
    FabricUplinks(),
    FabricSpine(),
    SiteLinks(),
    Queue(),
    Fragmentation(),
    Governance(),
    Failures(),
    Contention(),
    Admission(),
    Serving(),
    Spares(),
    OperationsLayer(),
    MonitoringLayer(),
    Money(),
    LeadTimeLayer(),
)
