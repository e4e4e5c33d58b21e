"""What the container of a training runs: the command, and the variables that carry the program.

The program of a function is its source: the function may use only its own names and builtins,
because the container has no other module of the caller.
"""

import ast
import builtins
import importlib.util
import inspect
import json
import math
import re
import shlex
import shutil
import symtable
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal

from hyperjob.sdk.errors import SourceError
from hyperjob.sdk.folder import LONGEST_BYTES, Folder
from hyperjob.sdk.parameters import shown

Framework = Literal["python", "torchrun", "jax"]
Train = Callable[..., Any] | str | Path
Args = Mapping[str, Any] | Sequence[str | float | Path] | None

_BARE: Final = "python:3.12-slim"
_BARE_IMAGE: Final = re.compile(r"(?:.*/)?python(?:[:@].*)?")
_LIBRARY: Final[Mapping[str, str]] = {"torchrun": "torch", "jax": "jax"}
_MODULE: Final = re.compile(r"-m\s+([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_IMPORTS: Final = re.compile(rb"^\s*(?:from|import)\s+hyperjob\b", re.MULTILINE)
_STUB: Final = """

def __getattr__(name):
    raise ImportError("the image has no hyperjob, only hyperjob.sdk.progress: put it into packages")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A local installation: the folder for its snapshots, and the cache of environments.

    `images` maps images to environments, which may have other packages than this Python.
    """

    snapshots: Path
    cache: Path
    images: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command, its variables, and a name for the HyperJob."""

    command: tuple[str, ...]
    variables: Mapping[str, str]
    title: str


def image_of(
    image: str | None, framework: Framework, packages: set[str], machine: Machine | None
) -> str:
    """Return the image of a training; raise ValueError where it lacks the framework."""
    library = _LIBRARY.get(framework)
    if library is None or library in packages:
        return image or _BARE
    if machine is not None:
        mapped = any(fnmatchcase(image or _BARE, pattern) for pattern in machine.images)
        if not mapped and importlib.util.find_spec(library) is None:
            raise ValueError(
                f"framework={framework!r} needs {library}, and the pods run in the environment of"
                f" this Python, which has none: pip install {library}, or"
                f" packages=[{library!r}]"
            )
        return image or _BARE
    if image is None or _BARE_IMAGE.fullmatch(image):
        has = f"image {image!r} has only Python" if image else "the default image has only Python"
        raise ValueError(
            f"framework={framework!r} needs {library}, and {has}: name an image with {library} by"
            f" image=, or install it by packages=[{library!r}]"
        )
    return image


def program(
    train: Train,
    args: Args,
    framework: Framework,
    *,
    requirements: Sequence[str],
    workdir: str | Path | None,
    include: Sequence[str],
    machine: Machine | None,
) -> Program:
    """Return what the container of a training runs; raise SourceError.

    `machine` is set for a local installation, whose pods read folders of this machine.
    """
    variables: dict[str, str] = {}
    folder: Folder | None
    if isinstance(train, str | Path):
        words, folder, title = _script(train, args, workdir, include)
    else:
        words, title = ["main.py"], getattr(train, "__name__", "training")
        variables["HYPERJOB_SDK_PROGRAM"] = _function(train, args)
        if workdir is None and include:
            raise SourceError(
                f"include={list(include)!r}: a function has no folder: name the one of the files by"
                " workdir"
            )
        folder = None if workdir is None else Folder.of(_existing(Path(workdir)), include=include)
    uses = _IMPORTS.search(variables.get("HYPERJOB_SDK_PROGRAM", "").encode()) is not None
    if folder is not None:
        variables |= _variables_of(folder, machine)
        uses = uses or any(_IMPORTS.search(each.read_bytes()) for each in folder.programs)
    if uses:
        text = Path(__file__).with_name("progress.py").read_text(encoding="utf-8")
        variables["HYPERJOB_SDK_PROGRESS"] = text + _STUB
    if requirements:
        variables["HYPERJOB_SDK_PACKAGES"] = "\n".join(requirements)
        if machine is not None:
            variables["HYPERJOB_SDK_CACHE"] = str(machine.cache)
    start = Path(__file__).with_name("start.py").read_text(encoding="utf-8")
    command = ("python", "-c", start, *_runner(framework), *words)
    return Program(
        command=tuple(_unexpanded(word) for word in command),
        variables={key: _unexpanded(value) for key, value in variables.items()},
        title=re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:30].strip("-") or "training",
    )


def _function(train: Callable[..., Any], args: Args) -> str:
    """Return the program that calls a function with its arguments; raise SourceError."""
    if args is not None and not isinstance(args, Mapping):
        raise SourceError(
            'args of a function are a dict of its keyword arguments, such as {"lr": 0.1};'
            f" got {args!r}"
        )
    found = program_of(train, args or {})
    if len(found.encode()) > LONGEST_BYTES:
        raise SourceError(f"{train.__name__}: its source is longer than {LONGEST_BYTES} bytes")
    return found


def _script(
    train: str | Path, args: Args, workdir: str | Path | None, include: Sequence[str]
) -> tuple[list[str], Folder, str]:
    """Return the words after the runner, the folder, and a title of a script or a module."""
    line = _command_line(train, args)
    if isinstance(train, str) and train.startswith("-"):
        module = _MODULE.fullmatch(train.strip())
        if module is None:
            raise SourceError(f"{train}: expected a script, or '-m package.module'")
        name = module.group(1)
        folder = Folder.of(_existing(Path(workdir or ".")), include=include)
        where = folder.path / name.replace(".", "/")
        if not where.with_suffix(".py").is_file() and not (where / "__main__.py").is_file():
            raise SourceError(
                f"{train}: {folder.path} has no module {name}: workdir is the folder above its"
                " package"
            )
        return ["-m", name, *line], folder, name.rpartition(".")[2]
    script = Path(train)
    if script.is_dir():
        found = next(iter(sorted(script.glob("*.py"))), script / "train.py")
        raise SourceError(
            f"{train} is a folder: name its script, such as {str(found)!r}, or a module with"
            f" '-m package.module' and workdir={str(script)!r}"
        )
    if not script.is_file():
        raise SourceError(f"{script}: no such file{_command_hint(str(train))}")
    if script.suffix in (".ipynb", ".sh"):
        raise SourceError(f"{script}: the containers run a Python script, such as train.py")
    top = _existing(script.parent if workdir is None else Path(workdir))
    if not script.resolve().is_relative_to(top.resolve()):
        raise SourceError(f"{script} is not in workdir={str(top)!r}")
    inside = script.resolve().relative_to(top.resolve())
    return [str(inside), *line], Folder.of(top, top / inside, include), script.stem


def _command_hint(text: str) -> str:
    """Return how to write a command line as parameters; empty for a text that is none."""
    try:
        words = shlex.split(text)
    except ValueError:
        return ""
    number = next((number for number, word in enumerate(words) if Path(word).is_file()), None)
    if number is None or len(words) == 1:
        return ""
    more = f", args={json.dumps(words[number + 1 :])}" if words[number + 1 :] else ""
    return f": for a command line write train({words[number]!r}{more})"


def _existing(path: Path) -> Path:
    """Return the path of a folder; raise SourceError for any other."""
    if not path.is_dir():
        raise SourceError(f"workdir={str(path)!r} is no folder")
    return path


def _variables_of(folder: Folder, machine: Machine | None) -> Mapping[str, str]:
    """Return the variables that carry a folder, or the path of its copy on this machine."""
    if machine is None or folder.fits:
        return {"HYPERJOB_SDK_FOLDER": folder.text()}
    copy = machine.snapshots / f"workdir-{len([*machine.snapshots.glob('workdir-*')])}"
    folder.say("to the pods on this machine")
    for path in folder.sent:
        target = copy / path.relative_to(folder.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return {"HYPERJOB_SDK_WORKDIR": str(copy)}


def _command_line(script: str | Path, args: Args) -> list[str]:
    if isinstance(args, str):
        split = json.dumps(shlex.split(args))
        raise SourceError(f"{script}: args of a script are a list of words: args={split}")
    if isinstance(args, Mapping):
        raise SourceError(f"{script}: args of a script are a list of words, its command line")
    words: Sequence[object] = args or ()
    for word in words:
        if isinstance(word, bool) or not isinstance(word, str | int | float | Path):
            raise SourceError(
                f"{script}: args has {word!r}, and a command line has only texts and numbers"
            )
    return [str(word) for word in words]


def _runner(framework: Framework) -> list[str]:
    """Return the command before the script or the module."""
    # The program torchrun of an image has the image's Python, without the packages of the training.
    return ["python", "-u", *(["-m", "torch.distributed.run"] if framework == "torchrun" else [])]


def _unexpanded(text: str) -> str:
    """Return the text with escaped `$`: Kubernetes expands $(NAME) in commands and variables."""
    return text.replace("$", "$$")


# The container may lack the types of annotations, which must not be evaluated there.
_HEADER: Final = "from __future__ import annotations\n"
_BLANK: Final = "\n"
_NOTEBOOK: Final = frozenset({"display", "get_ipython"})
"""Names that IPython adds to the builtins of the caller."""
_LITERALS: Final = (type(None), bool, int, str, bytes)
_DEEPEST: Final = 50


def program_of(function: Callable[..., Any], args: Mapping[str, Any]) -> str:
    """Return a program that calls the function with `args`; raise SourceError."""
    inner = inspect.unwrap(function)
    name = getattr(inner, "__name__", "")
    if not inspect.isfunction(inner) or name == "<lambda>":
        raise SourceError(
            f"{shown(function)}: a training is a function that is defined with def, the path of a"
            " script, or a module such as '-m package.train'; client.submit takes a document"
        )
    source, definition = _source_of(inner)
    _require_runnable(function, definition)
    called = definition.name
    outside = sorted(set(_outside(source, called)))
    if outside:
        raise SourceError(
            f"{called} uses {', '.join(outside)} from outside the function, and the containers get"
            " only its source: import modules inside the function, and pass values as args"
        )
    for key in args:
        if not isinstance(key, str):
            raise SourceError(f"{called}: args has the key {key!r}: its keys are parameter names")
    values = {key: _literal(value, f"args[{key!r}]") for key, value in args.items()}
    try:
        inspect.signature(inner).bind(**args)
    except TypeError as error:
        raise SourceError(f"{called}: args do not match its parameters: {error}") from None
    # Tracebacks and stacks then have the numbers of the lines in the user's own file.
    above = inner.__code__.co_firstlineno - _HEADER.count("\n") - 1 - source.startswith("if True:")
    call = ", ".join(f"{key!r}: {value}" for key, value in values.items())
    return (
        f"{_HEADER}{_BLANK * max(1, above)}{source.rstrip()}\n\n\n"
        'if __name__ == "__main__":\n'
        f"    {called}(**{{{call}}})\n"
    )


def _source_of(function: Callable[..., Any]) -> tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the source of a function as a statement at the top level, and its definition."""
    name = function.__name__
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = _of_command(function)
    if not source:
        raise SourceError(
            f"{name}: Python cannot read its source, as for functions typed at a prompt: write"
            " the function into a file or a notebook cell"
        )
    # To dedent a nested function would change its multi-line strings.
    if source[:1].isspace():
        source = f"if True:\n{source}"
    try:
        found = ast.parse(source)
    except SyntaxError:
        found = ast.Module([], [])
    for node in ast.walk(found):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return source, node
    raise SourceError(f"{name}: its source has no statement def: define the function with def")


def _of_command(function: Callable[..., Any]) -> str:
    """Return the source of a function in the text of `python -c`; empty for other functions."""
    code: types.CodeType = function.__code__
    if code.co_filename != "<string>" or sys.argv[:1] != ["-c"]:
        return ""
    text = sys.orig_argv[sys.orig_argv.index("-c") + 1]
    lines = text.splitlines(keepends=True)[code.co_firstlineno - 1 :]
    return "".join(inspect.getblock(lines))


def _require_runnable(
    function: Callable[..., Any], definition: ast.FunctionDef | ast.AsyncFunctionDef
) -> None:
    """Raise SourceError for a function whose call would not run its statements."""
    name, inner = definition.name, inspect.unwrap(function)
    if definition.decorator_list:
        words = ", ".join(f"@{ast.unparse(each)}" for each in definition.decorator_list)
        raise SourceError(
            f"{name} has the decorator {words}, and the containers get only the source of the"
            " function: remove the decorator, or define and call a decorated function inside"
        )
    if inner is not function:
        raise SourceError(
            f"{name} is wrapped by {function!r}, and the containers get"
            " only the source of the inner function: pass the inner function"
        )
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise SourceError(
            f"{name} is a generator function, whose call runs none of its statements: remove its"
            " yield, or iterate over it inside another function"
        )
    if inspect.iscoroutinefunction(inner):
        raise SourceError(
            f"{name}: coroutine functions are not supported: call asyncio.run inside a function"
        )


def _literal(value: object, path: str, depth: int = 0) -> str:
    """Return the Python expression of a value, which keeps types; raise SourceError."""
    if depth > _DEEPEST:
        raise SourceError(f"{path}: args are nested deeper than {_DEEPEST} levels")
    kind = type(value)
    if kind in _LITERALS:
        return repr(value)
    if isinstance(value, float) and kind is float:
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if isinstance(value, dict) and kind is dict:
        pairs = [
            f"{_literal(key, f'a key of {path}', depth + 1)}:"
            f" {_literal(each, f'{path}[{key!r}]', depth + 1)}"
            for key, each in value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple) and kind in (list, tuple):
        inside = [_literal(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(value)]
        if kind is list:
            return f"[{', '.join(inside)}]"
        return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
    if isinstance(value, set | frozenset) and kind in (set, frozenset):
        members = sorted(_literal(each, f"a member of {path}", depth + 1) for each in value)
        return f"{kind.__name__}([{', '.join(members)}])"
    raise SourceError(
        f"{path} is a {kind.__module__}.{kind.__qualname__}: args are numbers, texts, bytes, None,"
        " and lists, tuples, sets and dicts of them: convert it, such as by str, float or list"
    )


def _outside(source: str, name: str) -> Iterator[str]:
    """Yield the names that a function's source uses and does not define."""
    table = symtable.symtable(f"{_HEADER}{source}", "<function>", "exec")
    known = {*dir(builtins), name, "__name__", "__file__"} - _NOTEBOOK
    for symbol in table.get_symbols():  # defaults of parameters
        if symbol.is_referenced() and symbol.get_name() not in known and not symbol.is_annotated():
            yield symbol.get_name()
    yield from _globals(table, known)


def _globals(table: symtable.SymbolTable, known: set[str]) -> Iterator[str]:
    for child in table.get_children():
        if child.get_type() == "annotation":
            continue
        for symbol in child.get_symbols():
            if symbol.is_global() and symbol.is_referenced() and symbol.get_name() not in known:
                yield symbol.get_name()
        yield from _globals(child, known)
