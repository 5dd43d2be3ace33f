#!/usr/bin/env python3
"""Compares frontend/operators.def with the operator schemas that the installed onnx package carries: which versions an
operator has from opset 7 on, the number of its inputs and outputs, the types of its first input, and its attributes
with their types and defaults; and that every operator of the standard is in the table, with rows or as unsupported. Rows of
com.microsoft are compared with the schemas that ONNX Runtime carries.
Exit status 1 and one line a difference when they differ."""
import argparse
import pathlib
import re
import struct
import sys

import onnx
import onnx.defs

ROOT = pathlib.Path(__file__).parents[2]
OLDEST = 7
ANY = 255


def split(text):
    """The arguments of a macro call: commas inside brackets and quotes do not count."""
    parts, depth, start, quoted = [], 0, 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter == "(":
            depth += 1
        elif not quoted and letter == ")":
            depth -= 1
        elif not quoted and letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return parts + [text[start:].strip()]


def type_numbers():
    """Text of a C expression of type sets -> its value, by operators.c and the headers it uses."""
    names = {}
    for name, number in re.findall(r"^DTYPE\((\w+), (\d+),", (ROOT / "ir/dtypes.def").read_text(), re.M):
        names[f"DTYPE_BIT({name})"] = 1 << int(number)
    defines = {}
    for source in ("ir/types.h", "frontend/operators.c"):
        text = (ROOT / source).read_text().replace("\\\n", " ")
        for name, value in re.findall(r"^#define ((?:T|DTYPES)_\w+)\s+(.+)$", text, re.M):
            defines[name] = value

    def value_of(expression):
        for _ in range(20):
            replaced = re.sub(r"\b(?:T|DTYPES)_\w+", lambda m: f"({defines[m.group()]})", expression)
            if replaced == expression:
                break
            expression = replaced
        expression = re.sub(r"DTYPE_BIT\(\w+\)", lambda m: str(names[m.group()]), expression)
        return eval(expression, {"__builtins__": {}})  # numbers and operators only

    return value_of


def read_table():
    rows, microsoft, unsupported = [], [], []
    for line in (ROOT / "frontend/operators.def").read_text().splitlines():
        if line.startswith("OPERATOR("):
            rows.append(split(line[len("OPERATOR(") : -1]))
        elif line.startswith("MICROSOFT("):
            microsoft.append(split(line[len("MICROSOFT(") : -1]))
        elif line.startswith("UNSUPPORTED("):
            unsupported.append(split(line[len("UNSUPPORTED(") : -1])[1])
    return rows, microsoft, unsupported


def table_attributes(text):
    """name -> (type, required, default)"""
    result = {}
    for kind, arguments in re.findall(r"(\w+)\(([^()]*)\)", text):
        arguments = split(arguments)
        name = arguments[0]
        if kind == "OTHER":
            result[name] = (arguments[1], arguments[2] == "REQUIRED", "any")
        elif kind in ("INT", "DTYPE_NUMBER"):
            result[name] = ("INT", False, int(arguments[1]))
        elif kind == "FLOAT":
            result[name] = ("FLOAT", False, struct.pack("f", float(arguments[1].rstrip("F"))))
        elif kind == "WORD":
            result[name] = ("STRING", False, arguments[1].strip('"'))
        else:
            base, _, need = kind.partition("_")
            result[name] = ({"DTYPE": "INT", "WORD": "STRING"}.get(base, base), need == "REQUIRED", None)
    return result


def schema_attributes(schema):
    result = {}
    for attribute in schema.attributes.values():
        default = None
        if attribute.default_value.name:
            default = onnx.helper.get_attribute_value(attribute.default_value)
            if isinstance(default, bytes):
                default = default.decode()
            elif isinstance(default, float):
                default = struct.pack("f", default)
        result[attribute.name] = (str(attribute.type).split(".")[-1], attribute.required, default)
    return result


def schema_types(schema):
    if not schema.inputs:
        return 0
    allowed = [schema.inputs[0].type_str]
    for constraint in schema.type_constraints:
        if constraint.type_param_str == schema.inputs[0].type_str:
            allowed = constraint.allowed_type_strs
    result = 0
    for text in allowed:
        name = re.fullmatch(r"tensor\((\w+)\)", text)
        if name:
            name = {"float": "FLOAT", "double": "DOUBLE"}.get(name.group(1), name.group(1).upper())
            result |= 1 << onnx.TensorProto.DataType.Value(name)
    return result


def compare_attributes(row, known, where):
    have, problems = table_attributes(row[9]), []
    for attribute in have.keys() | known.keys():
        mine, theirs = have.get(attribute), known.get(attribute)
        if mine and theirs and mine[2] == "any":
            mine, theirs = mine[:2], theirs[:2]
        if mine != theirs:
            problems.append(f"{where}: attribute {attribute} is {mine}, the schema has {theirs}")
    return problems


def compare_microsoft(rows):
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    schemas = {schema.name: schema for schema in get_all_operator_schema() if schema.domain == "com.microsoft"}
    problems = []
    for row in rows:
        schema = schemas.get(row[0])
        if not schema or schema.since_version != int(row[1]):
            problems.append(f"com.microsoft.{row[0]}-{row[1]} does not exist")
            continue
        required = [str(i.option).endswith("Single") for i in schema.inputs] + [False]
        want = [required.index(False), len(schema.inputs), schema.min_output, len(schema.outputs)]
        if [int(n) for n in row[2:6]] != want:
            problems.append(f"com.microsoft.{row[0]}: arity {row[2:6]}, the schema has {want}")
        known = {name: (str(a.type).split(".")[-1], a.required) for name, a in schema.attributes.items()}
        mine = {name: facts[:2] for name, facts in table_attributes(row[9]).items()}
        if mine != known:
            problems.append(f"com.microsoft.{row[0]}: attributes {mine}, the schema has {known}")
    if [row[0] for row in rows] != sorted(row[0] for row in rows):
        problems.append("the rows of com.microsoft are not in the order of their names, which bisection needs")
    return problems


def compare(rows, unsupported):
    schemas, problems = {}, []
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            schemas.setdefault(schema.name, {})[schema.since_version] = schema
    value_of = type_numbers()
    seen = {}
    for row in rows:
        name, since = row[0], int(row[1])
        seen.setdefault(name, []).append(since)
        schema = schemas.get(name, {}).get(since)
        if not schema:
            problems.append(f"{name}-{since} does not exist")
            continue
        want = [min(n, ANY) for n in (schema.min_input, schema.max_input, schema.min_output, schema.max_output)]
        if [int(n) for n in row[2:6]] != want:
            problems.append(f"{name}-{since}: arity {row[2:6]}, the schema has {want}")
        if value_of(row[6]) != schema_types(schema):
            problems.append(f"{name}-{since}: types {value_of(row[6]):#x}, the schema has {schema_types(schema):#x}")
        problems += compare_attributes(row, schema_attributes(schema), f"{name}-{since}")
    names = list(dict.fromkeys(row[0] for row in rows))
    if names != sorted(names):
        problems.append("the rows are not in the order of their names, which bisection needs")
    for name, versions in seen.items():
        all_versions = sorted(schemas[name])
        first = max((v for v in all_versions if v <= OLDEST), default=OLDEST)
        want = [v for v in all_versions if v >= first]
        if versions != want:
            problems.append(f"{name}: versions {versions}, the schemas have {want}")
    standard = {name for name, versions in schemas.items() if not all(s.deprecated for s in versions.values())}
    problems += [f"{name} is neither in rows nor unsupported" for name in standard - seen.keys() - set(unsupported)]
    problems += [f"{name} is unsupported and has rows" for name in set(unsupported) & seen.keys()]
    problems += [f"{name} is no operator of the standard" for name in set(unsupported) - schemas.keys()]
    newest = re.search(r"NEWEST_OPSET = (\d+)", (ROOT / "frontend/operators.h").read_text()).group(1)
    if int(newest) != onnx.defs.onnx_opset_version():
        problems.append(f"NEWEST_OPSET is {newest}, the package has {onnx.defs.onnx_opset_version()}")
    return problems


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows, microsoft, unsupported = read_table()
    problems = compare(rows, unsupported) + compare_microsoft(microsoft)
    for problem in sorted(problems):
        print(problem)
    print(f"{len(rows) + len(microsoft)} rows and {len(unsupported)} unsupported operators compared")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
