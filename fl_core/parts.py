"""Base classes of everything that a suite can choose: `Frozen`, validated data, and `Part`, chosen by name.

Problems, strategies, laws of time, codings and optimisers derive from `Part`; a class attribute `name` in one
of the family's modules is all that it takes to be found. `identity` is the basis of the keys of stored runs.
A part is written `{name: fedbuff, buffer: 10}`, or `fedbuff` where its defaults will do. A user's own class
is named by its import path, `{name: "my_package.my_module:MyStrategy", ...}`, without registration.

Fixed: `identity`, `reference` and the JSON form of fields (keys and descriptions of stored runs), and which
values are valid, since suites have them. Free: how members are found, and texts of errors.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from numbers import Number
from types import ModuleType
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_wrap_validator_function

from fl_core import field_comments, import_guard
from fl_core.text import nearest

NUMPY_BOOLEANS = {"bool", "bool_"}  # names of NumPy's type, recognised without importing NumPy


class Frozen(BaseModel):
    """Base of validated, unchangeable data; unknown keys are errors.

    An instance inside of other data is used without a second validation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="strings")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def validate_once(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
            return value if isinstance(value, cls) else validate(value)

        schema: dict[str, Any] = dict(handler(source))
        if "__pydantic_core_schema__" in vars(cls):  # a complete class has the wrapper already
            return cast(CoreSchema, schema)
        reference = schema.pop("ref", None)
        return no_info_wrap_validator_function(validate_once, cast(CoreSchema, schema), ref=reference)

    @model_validator(mode="wrap")
    @classmethod
    def _without_booleans_as_numbers(cls, value: Any, handler: Callable[[Any], Self]) -> Self:
        """Refuse booleans in the place of numbers; pydantic reads true as 1."""
        validated = handler(value)
        if isinstance(value, Mapping):
            for name, value_given in value.items():
                if name in cls.model_fields and _is_number_for_boolean(
                    value_given, getattr(validated, name, None)
                ):
                    raise FieldError(name, "must be a number, not true or false")
        return validated

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """Return each field's description, or the comment next to the field in the source."""
        from_comments = field_comments.of_fields(cls)
        return {
            name: field.description or from_comments.get(name, "") for name, field in cls.model_fields.items()
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        _describe(cls, handler.resolve_ref_schema(schema))
        return schema

    def changed(self) -> dict[str, Any]:
        """Return the fields with non-default values, in order of declaration."""
        default = _defaults(type(self))
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if value != default[name]}

    def identity(self) -> dict[str, Any]:
        """Return the fields with non-default values as JSON data.

        So a new field leaves keys unchanged. Nested parts always appear, each with its name and version.
        """
        values = {name: getattr(self, name) for name in type(self).model_fields}
        nested = {name: identity for name, value in values.items() if (identity := _identities(value))}
        differ = self.changed().keys() - nested.keys()
        plain = self.model_dump(mode="json", include=differ)
        return {**{name: plain[name] for name in differ}, **nested}


def _is_number_for_boolean(written: Any, validated: Any) -> bool:
    """Return whether a number, alone or in a list or mapping, was made of a boolean."""
    if isinstance(written, bool) or type(written).__name__ in NUMPY_BOOLEANS:
        return isinstance(validated, Number) and not isinstance(validated, bool)
    if isinstance(written, list | tuple) and isinstance(validated, list | tuple):
        return any(map(_is_number_for_boolean, written, validated))
    if isinstance(written, Mapping) and isinstance(validated, Mapping):
        return any(_is_number_for_boolean(item, validated.get(key)) for key, item in written.items())
    return False


@functools.cache
def _defaults(cls: type[Frozen]) -> dict[str, Any]:
    """Return the default of every field; cached, since a campaign has thousands of identities."""
    return {name: field.get_default() for name, field in cls.model_fields.items()}


def _describe(cls: type[Frozen], schema: dict[str, Any]) -> None:
    """Add descriptions to the properties of a class's JSON schema."""
    for name, text in cls.descriptions().items():
        if text and name in schema.get("properties", {}):
            schema["properties"][name]["description"] = text


def _identities(value: Any) -> Any:
    """Return the identity of validated data, or of each item of a tuple; None for other values."""
    if isinstance(value, Frozen):
        return value.identity()
    several = isinstance(value, tuple) and any(isinstance(item, Frozen) for item in value)
    return [item.identity() for item in value] if several else None


_EXPONENT = re.compile(r"[eE][-+]?0*[1-9]\d{3}")  # four digits or more: Fraction writes out all zeros


def exact(value: Any) -> Fraction:
    """Return the number as written: 0.2 is 1/5, not the nearest double.

    Raises:
        ValueError: `value` is not a finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Fraction):
        raise ValueError("must be a number such as 0.5, or a fraction such as '1/3'")
    if isinstance(value, str) and (len(value) > 100 or _EXPONENT.search(value)):
        raise ValueError("must have at most 100 characters, and an exponent of at most three digits")
    try:
        return Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f"must be a number such as 0.5, or a fraction such as '1/3', not {value!r}"
        ) from None


BYTE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def bytes_as_written(value: Any) -> Any:
    """Return a number of bytes for a text such as "40 MB"; other values unchanged, for pydantic to check.

    Raises:
        ValueError: The text is no such number, or no whole number of bytes.
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([a-zA-Z]*)\s*", value)
    size = Fraction(match[1]) * BYTE_UNITS.get(match[2] or "B", 0) if match else Fraction(0)
    if size < 1 or size.denominator > 1:
        raise ValueError(
            f"must be a number of bytes, or a size such as '40 MB' (units: {', '.join(BYTE_UNITS)})"
        )
    return int(size)


class FieldError(ValueError):
    """A validator's error about a field: the name, or a dotted key, and the fault of the value."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__(field, what)
        self.field, self.what = field, what

    def __str__(self) -> str:
        return f"{self.field}: {self.what}"


def ordered(low: str, high: str, *, strictly: bool = False) -> Any:
    """Return a validator of two fields: `high`, if not None, is at least `low`, or `strictly` above."""

    def validate(data: Any) -> Any:
        minimum, value = getattr(data, low), getattr(data, high)
        if value is not None and (value < minimum or (strictly and value == minimum)):
            bound = "above" if strictly else "at least"
            raise FieldError(high, f"must be {bound} `{low}`, {minimum}, not {value}")
        return data

    return model_validator(mode="after")(validate)


Rate = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Exact = Annotated[
    Fraction,
    BeforeValidator(exact),
    PlainSerializer(str),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\d+(/\d+|\.\d+)?$"}]}),
]
Time = Annotated[Exact, Field(ge=0)]
Length = Annotated[Exact, Field(gt=0)]
Bytes = Annotated[
    int,
    Field(ge=1),
    BeforeValidator(bytes_as_written, json_schema_input_type=Annotated[int, Field(ge=1)] | str),
]


class Tune(Frozen):
    """The range of a field for tuning, from low to high, both included.

    `buffer: Annotated[Count, Tune(1, 32)] = 10` is tuned from 1 to 32 unless a suite says otherwise.
    """

    low: Rate  # the smallest value
    high: Rate  # the largest value
    log: bool = True  # whether it is searched on a logarithmic scale

    def __init__(self, *values: float, **named: Any) -> None:
        super().__init__(**dict(zip(type(self).model_fields, values, strict=False)), **named)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(source)  # an annotation with a range does not change which values a field takes

    _upwards = ordered("low", "high", strictly=True)


class TuneAmong(tuple[float | str, ...]):
    """The values of a field for tuning, `TuneAmong(0.1, 0.5, 1.0)`."""

    __slots__ = ()

    def __new__(cls, *values: float | str) -> Self:
        return super().__new__(cls, values)


Candidates = Tune | tuple[float | str, ...]  # a range, or the values to try


class Part(Frozen):
    """Base of everything chosen by name in a suite.

    A *family* is a direct subclass that names the modules and packages of its members (`homes`); a *member*
    has a `name`, and the first line of its docstring, which `asyncfl list` prints, gives what it is and its
    paper.
    """

    homes: ClassVar[tuple[str, ...]]
    name: ClassVar[str]
    # Further name → first line, and fields: a published method that is this one with these fields
    presets: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {}
    version: ClassVar[int] = 1  # raised when the same fields give other results, or a default changes

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            raise TypeError(
                f"{cls.__name__} has an __init__: replace it by fields, such as `beta: float = "
                "0.9`, which suites and tuning can set"
            )

    def identity(self) -> dict[str, Any]:
        """Return name, version and fields, the part's share of the key of recorded runs."""
        return {"name": self.reference(), "version": self.version, **super().identity()}

    @classmethod
    def family(cls) -> type[Part]:
        """Return the family of the class."""
        return next(base for base in cls.__mro__ if "homes" in vars(base))

    @classmethod
    def members(cls) -> dict[str, type[Self]]:
        """Return every member of the family in the package, by name."""
        return dict(_members(cls))

    @classmethod
    def tunable(cls) -> dict[str, Candidates]:
        """Return the default search space: the fields annotated with `Tune` or `TuneAmong`."""
        return {
            name: candidates
            for name, field in cls.model_fields.items()
            for candidates in field.metadata
            if isinstance(candidates, Tune | TuneAmong)
        }

    @model_validator(mode="wrap")
    @classmethod
    def _by_name(cls, value: Any, handler: Callable[[Any], Self]) -> Self:
        """Validate a name, or fields with a name, as an instance of the named member."""
        if isinstance(value, str):
            value = {"name": value}
        if isinstance(value, type):
            raise PydanticCustomError(
                "class", f"is a class: write {value.__name__}(), with its fields inside"
            )
        if not isinstance(value, dict):
            return handler(value)
        fields = cls.written_out(value)
        chosen = find(cls, fields.pop("name", None))
        return handler(fields) if chosen is cls else chosen.model_validate(fields)

    @classmethod
    def written_out(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a member as written, with a preset's name replaced by the preset's fields."""
        name = fields.get("name")
        if not isinstance(name, str) or ":" in name:
            return dict(fields)
        member = _known(cls.family()).get(name, cls)
        if name not in member.presets:
            return dict(fields)
        return {**member.presets[name][1], **fields, "name": member.name}

    @model_serializer(mode="wrap")
    def _with_name(self, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return the fields for JSON, with the name first."""
        return {"name": self.reference(), **handler(self)}

    def label(self) -> str:
        """Return a short name for tables and figures: the name, and fields with non-default values."""
        return " ".join([self.reference(), *(f"{key}={value}" for key, value in self.changed().items())])

    @classmethod
    def reference(cls) -> str:
        """Return the name of the class in a suite file."""
        ours = "name" in vars(cls) and cls.__module__.startswith(cls.family().homes)
        return cls.name if ours else f"{cls.__module__}:{cls.__qualname__}"

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        if "homes" not in vars(cls):
            return super().__get_pydantic_json_schema__(core_schema, handler)
        members_by_name = _known(cls)
        members = [_member_schema(member, handler) for member in cls.members().values()]
        path = {
            "type": "string",
            "pattern": r"^[\w.]+:\w+$",
            "description": "a class of your own by its import path, such as my_package.my_module:MyClass",
        }
        imported_class = {"type": "object", "properties": {"name": path}, "required": ["name"]}
        text = inspect.cleandoc(cls.__doc__ or "")
        return {
            "description": text,
            "anyOf": [{"enum": list(members_by_name)}, path, *members, imported_class],
        }


def _member_schema(member: type[Part], handler: GetJsonSchemaHandler) -> dict[str, Any]:
    """Return the JSON schema of a member, with the names that choose it in a suite."""
    schema = dict(handler.resolve_ref_schema(handler(member.__pydantic_core_schema__)))
    _describe(member, schema)
    presets = vars(member).get("presets", {})
    names = {"enum": [member.name, *presets]} if presets else {"const": member.name}
    schema["properties"] = {
        "name": {**names, "description": "the name of the part"},
        **schema.get("properties", {}),
    }
    schema["required"] = ["name", *schema.get("required", [])]
    return schema


P = TypeVar("P", bound=Part)


def find(cls: type[P], name: Any) -> type[P]:
    """Return the class called `name` where a `cls` is expected.

    Raises:
        PydanticCustomError: There is no such class; the message suggests the nearest valid name.
    """
    if name is None and "homes" not in vars(cls):
        return cls
    kind = " ".join(re.findall("[A-Z][a-z]*", cls.family().__name__)).lower()
    members = _known(cls.family())
    if not isinstance(name, str):
        raise PydanticCustomError("name", f"a {kind} needs a name: one of {', '.join(members)}")
    if ":" in name:
        return _imported(cls, kind, name)
    if name not in members:
        hint = nearest(name, members)
        raise PydanticCustomError(
            "name",
            f"unknown {kind} '{name}'{hint} Available: {', '.join(members)}; "
            "or a class of your own, 'package.module:Class'",
        )
    member = members[name]
    if not issubclass(member, cls):
        raise PydanticCustomError("name", f"'{name}' is a {kind}, not a {cls.__name__}")
    return member


@functools.cache
def _members(cls: type[P]) -> dict[str, type[P]]:
    """Return the members by name; cached, since the folders of the family are listed."""
    modules = []
    for home in map(importlib.import_module, cls.homes):
        inside = pkgutil.iter_modules(getattr(home, "__path__", ()), f"{home.__name__}.")
        modules += [home, *(importlib.import_module(module.name) for module in inside)]
    named = {
        item.name: item
        for module in modules
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, cls) and item.__module__ == module.__name__
        if "name" in vars(item)
    }
    return dict(sorted(named.items()))


@functools.cache
def _known(family: type[Part]) -> dict[str, type[Part]]:
    """Return the members of a family by name, each preset's name included."""
    members = family.members()
    presets = {name: member for member in members.values() for name in vars(member).get("presets", ())}
    return dict(sorted({**members, **presets}.items()))


def _imported(cls: type[P], kind: str, path: str) -> type[P]:
    """Return a user's class by import path; PydanticCustomError unless it is a subclass of `cls`."""
    cls_imported = imported(path)
    if not (isinstance(cls_imported, type) and issubclass(cls_imported, cls)):
        expected = f"asyncfl.{cls.__name__}"
        raise PydanticCustomError("import", f"'{path}' is not a {kind}: it must subclass {expected}")
    return cls_imported


def imported(path: str) -> Any:
    """Return the object at `package.module:name`.

    Raises:
        PydanticCustomError: The object cannot be imported.
    """
    try:
        return import_guard.load(path)
    except import_guard.ImportRefusedError as error:
        raise PydanticCustomError("import", f"'{path}' is not imported, since {error}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's module may fail in any way
        reason = f"{type(error).__name__}: {import_guard.text(error)}{import_guard.place(error)}"
        if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
            reason += nearest(str(error.name), vars(error.obj)).removesuffix(".")
        raise PydanticCustomError("import", f"cannot import '{path}': {reason}") from None
