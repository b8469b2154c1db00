"""Our outputs: how they are recognised, which parts may be replaced, and how they are published, whole or not at all.

`table/` and `store/` both write outputs; they replace, remove and build them only through this module.
"""

from __future__ import annotations

from streamkernel.blobs import store_error, translated_os_errors
from streamkernel.outputs.building import Building
from streamkernel.outputs.complete import FACTOR_PARTS, CompleteOutput, Kind, is_of_factor, output_kind, read_complete
from streamkernel.outputs.files import make_own_folder, refuse_link
from streamkernel.outputs.generation import GenerationBuilding, building_at
from streamkernel.outputs.partial import PartialFolder, publish, remove_any, remove_stray_partials
from streamkernel.outputs.replace import check_name_length, check_new_file, check_output, check_target, remove_former
from streamkernel.outputs.single_file import new_file
from streamkernel.outputs.temporary import TemporaryFolder

__all__ = [
    "FACTOR_PARTS",
    "Building",
    "CompleteOutput",
    "GenerationBuilding",
    "Kind",
    "PartialFolder",
    "TemporaryFolder",
    "building_at",
    "check_name_length",
    "check_new_file",
    "check_output",
    "check_target",
    "is_of_factor",
    "make_own_folder",
    "new_file",
    "output_kind",
    "publish",
    "read_complete",
    "refuse_link",
    "remove_any",
    "remove_former",
    "remove_stray_partials",
    "store_error",
    "translated_os_errors",
]
