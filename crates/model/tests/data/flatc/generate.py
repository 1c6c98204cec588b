"""Files with every kind of operation and command, written by the public flatc from the public schema, and what they hold.

    python generate.py TT_MLIR/include

A table's numbers, strings and vectors are all there in `all.*`, and at random in `half.*`; what is absent has the schema's default. Tables, structs and unions
are always there. The JSON beside each file has every field, as the reader writes it as data: a union as `{member: table}`, an absent optional number as null,
bytes as `{"bytes": [...]}`. Tensor references have their id only.
"""
import json
import pathlib
import random
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
here = pathlib.Path(__file__).parent
dice = random.Random(2026)
RANGES = {"int8": 7, "uint8": 8, "ubyte": 8, "ushort": 16, "uint16": 16, "int": 31, "int32": 31, "uint": 32, "uint32": 32, "int64": 53, "uint64": 53}
# Fields of later compilers (crate::schema::Edition), which this schema does not have.
LATER = {
    "EltwiseBinaryOp": {"activations": [], "input_tensor_a_activations": [], "input_tensor_b_activations": []},
    "EltwiseBinaryCompositeOp": {"activations": [], "input_tensor_a_activations": [], "input_tensor_b_activations": []},
    "MatmulOp": {"fused_swiglu": False}, "Conv3dOp": {"dilation": []}, "AvgPool2dExtraParams": {"divisor_override": None},
    "CaptureOrExecuteTraceOp": {"trace_key_input_indices": [], "device_resident_input_count": 0},
}
OPTIONAL_TEXT = {("MatmulOp", "activation"), ("LinearOp", "activation"), ("DitRMSNormUnaryFusedOp", "activation")}


def read(path, seen, types):
    """Types of a schema file and those it includes, by name."""
    if path in seen:
        return types
    seen.add(path)
    text = re.sub(r"//.*", "", (root / path).read_text())
    for include in re.findall(r'include "(.*?)"', text):
        read(include, seen, types)
    for kind, name, body in re.findall(r"\b(table|struct|enum|union)\s+(\w+)[^{;]*\{(.*?)\}", text, re.S):
        parts = [part.strip() for part in re.split("[;,]", body) if part.strip()]
        types[name] = kind, [[side.strip() for side in re.split("[:=]", part)] for part in parts]
    return types


class Writer:
    def __init__(self, types, chance, lists):
        self.types, self.chance, self.lists = types, chance, lists

    def number(self, kind):
        if kind == "bool":
            return dice.random() < 0.5
        if kind in ("float", "double"):
            return dice.randint(-99, 99) / 8
        bits = RANGES[kind]
        low = -(2 ** bits) if kind in ("int8", "int", "int32", "int64") else 0
        return dice.choice([dice.randint(0, 9), dice.randint(low, 2 ** bits - 1)])

    def value(self, kind):
        """As flatc takes it, and as the reader gives it."""
        if kind == "string":
            return (dice.choice(["", "text", "ü"]),) * 2
        if kind not in self.types:
            return (self.number(kind),) * 2
        sort, members = self.types[kind]
        if kind == "ChipCapability":
            return "HostMMIO", 1
        if sort == "enum":
            return (dice.choice(members)[0],) * 2
        if sort == "union":
            name, *table = dice.choice(members)
            name, table = name.split(".")[-1], (table or [name])[0].split(".")[-1]
            given, expected = self.table(table)
            return (name, given), {name: expected}
        given, expected = self.table(kind)
        return given, expected

    def table(self, name, preset={}):
        given, expected = {}, dict(LATER.get(name, {}))
        for field, kind, *default in self.types[name][1]:
            kind = kind.replace("tt.target.", "").replace("ttnn.", "")
            inner = kind.strip("[]")
            composite = inner in self.types and self.types[inner][0] != "enum"
            there = self.types[name][0] == "struct" or dice.random() < self.chance
            if field in preset.get(name, {}):
                values = preset[name][field]
            elif kind[0] == "[":
                values = [self.value(inner) for _ in range(dice.randint(1, self.lists) if there else 0)]
            elif composite or there:
                values = self.value(kind)
            else:
                values = None
            is_union = inner in self.types and self.types[inner][0] == "union"
            if kind in ("[ubyte]", "[uint8]"):
                given[field], expected[field] = [value for value, _ in values], {"bytes": [value for value, _ in values]}
            elif kind[0] == "[":
                expected[field] = [value for _, value in values]
                if values and is_union:
                    # flatc wants the members' names first.
                    given[field + "_type"], given[field] = [kind for (kind, _), _ in values], [value for (_, value), _ in values]
                elif values:
                    given[field] = [value for value, _ in values]
            elif values is None:
                expected[field] = self.default(name, field, kind, default)
            elif is_union:
                (given[field + "_type"], given[field]), expected[field] = values
            else:
                given[field], expected[field] = values
        if name == "TensorRef" and "size" not in given:
            expected = {"global_id": given.get("global_id", 0)}
        return given, expected

    def default(self, name, field, kind, default):
        if kind == "string":
            return None if (name, field) in OPTIONAL_TEXT else ""
        if default == ["null"]:
            return None
        if kind in self.types:
            return default[0] if default else self.types[kind][1][0][0]
        return json.loads(default[0]) if default else (False if kind == "bool" else 0)


def whole(writer, union):
    """One of each member of a union, in the table that holds it."""
    values = []
    for name in (member[0] for member in writer.types[union][1]):
        given, expected = writer.table(name)
        text = {"debug_info": "", **({"loc_info": "loc"} if union == "OpType" else {"loc": "loc"})}
        kind = name if union == "CommandType" else "Generic" if name == "GenericOp" else name[:-2]
        values.append(({"type_type": name, "type": given, **text}, {"type": {kind: expected}, **text}))
    return values


def write(name, schema, hash, writer, preset, top):
    given, expected = writer.table(top, {top: {"schema_hash": (hash, hash), "programs": [writer.table("Program", preset)]}})
    given_file = here / f"{name}.json"
    given_file.write_text(json.dumps(given))
    subprocess.run(["flatc", "--binary", "--size-prefixed", "-I", root, "-o", here, root / schema, given_file], check=True)
    given_file.write_text(json.dumps(expected, separators=(",", ":"), ensure_ascii=False) + "\n")


TTNN = "ttmlir/Target/TTNN/binary.fbs"
METAL = "ttmlir/Target/TTMetal/binary.fbs"
for name, chance in (("all", 1.0), ("half", 0.5)):
    writer = Writer(read(TTNN, set(), {}), chance, 1)
    preset = {"Program": {"operations": whole(writer, "OpType")}}
    write(f"{name}_ttnn", TTNN, "f36068002aa895e8e8abb85f8ea0b818812a4ffa7f2c24f3ede1df3183dd6478", writer, preset, "TTNNBinary")
    writer = Writer(read(METAL, set(), {}), chance, 2)
    queue = writer.table("CommandQueue", {"CommandQueue": {"commands": whole(writer, "CommandType")}})
    device = writer.table("DeviceProgram", {"DeviceProgram": {"command_queues": [queue]}})
    preset = {"Program": {"device_programs": [device]}}
    write(f"{name}_ttm", METAL, "dcfff37afffdddc22dde3c9e85e6a364193fdf761495360696b1dbe3376dc696", writer, preset, "TTMetalBinary")
