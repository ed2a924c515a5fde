"""Machine code that numba made once for this processor: kept on disk, and loaded without numba.

Importing numba takes longer than embedding fifty sentences. LLVM, which it stands on, is enough to load what it made.
"""

import logging
import sys
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from elmokit.errors import OutputError
from elmokit.files import cache_folder, replace_file

DIGEST = 32  # bytes before the code, by which a damaged file is known
_lock = Lock()
_loaded: list[Any] = []  # what LLVM would free with the last reference to it


def load_kernel(module: str, name: str, prototype: Any) -> Any | None:
    """The kernel of that name, a C function of this prototype, which holds no lock of the interpreter's.

    `module` is one with a table KERNELS of functions that compile. None where numba or LLVM cannot be had.
    """
    with _lock:
        address = _address(module, name)
    return None if address is None else prototype(address)


@cache
def _address(module: str, name: str) -> int | None:
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    processor, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=processor, features=features, opt=3, jit=True, codemodel="jitdefault"
    )
    path = _path(module, name, processor, features)
    if path is None:
        return None
    code = _read(path) or _write(path, _compile(llvm, machine, module, name))
    if code is None:
        return None
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _loaded.append(engine)
    address: int = engine.get_function_address(name)
    return address


def _path(module: str, name: str, *processor: str) -> Path | None:
    """Where the code is kept: a name that changes with all that the code depends on."""
    found = find_spec(module)
    if found is None or found.origin is None or not Path(found.origin).is_file():
        return None
    made_of = [Path(found.origin).read_bytes(), sys.platform.encode(), *(part.encode() for part in processor)]
    made_of += [version(package).encode() for package in ("numba", "llvmlite") if find_spec(package)]
    hashed = blake2b(digest_size=16)
    for part in made_of:
        hashed.update(blake2b(part).digest())
    return cache_folder() / "machine-code" / f"{name}-{hashed.hexdigest()}.o"


def _read(path: Path) -> bytes | None:
    """The code, if it is there and whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:DIGEST], content[DIGEST:]
    return code if digest == blake2b(code, digest_size=DIGEST).digest() else None


def _write(path: Path, code: bytes | None) -> bytes | None:
    """Keep the code, if there is any and this folder can be written; it is compiled anew next time if not."""
    if code is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, blake2b(code, digest_size=DIGEST).digest() + code)
        except (OSError, OutputError) as error:
            logging.getLogger(__name__).info("compiled code cannot be kept, and is made at every start: %s", error)
    return code


def _compile(llvm: Any, machine: Any, module: str, name: str) -> bytes | None:
    """An object file in which the kernel stands by itself, without what numba puts around it for Python."""
    try:
        kernels = import_module(module).KERNELS
    except ImportError:
        return None
    logging.getLogger(__name__).info("compiling %s for this processor: once, a few seconds", name)
    kernel = kernels[name]()
    whole = llvm.parse_assembly(kernel.inspect_llvm())
    whole.get_function(kernel.native_name).name = name
    for part in (*whole.functions, *whole.global_variables):
        if not part.is_declaration and part.name != name:
            part.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_ipsccp_pass()  # a kernel raises nothing, so that what would report it is never reached
    passes.add_global_dead_code_eliminate_pass()
    passes.run(whole, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    if outside := [part.name for part in whole.functions if part.is_declaration and not part.name.startswith("llvm.")]:
        logging.getLogger(__name__).info("%s calls %s: it cannot be loaded without numba", name, ", ".join(outside))
        return None
    code: bytes = machine.emit_object(whole)
    return code
