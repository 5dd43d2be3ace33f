#!/usr/bin/env python3
"""Compares frontend/onnx.proto with the format that the installed onnx package carries: every message, field number,
name, type, label, packing and oneof, and every enum value that both know. The only field of ours that the package may
lack is TensorProto.payload_index. Exit status 1 and one line a difference when they differ."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2
import onnx.onnx_ml_pb2 as reference

ADDED = {("TensorProto", "payload_index")}
SKIPPED_ENUMS = {"Version", "OperatorStatus"}


def messages(container, prefix=""):
    """All message types by their path, nested ones too."""
    for message in container:
        path = prefix + message.name
        yield path, message
        yield from messages(message.nested_type, path + ".")


def fields(message):
    """number -> (name, type, label, type name, packed, oneof)."""
    return {
        field.number: (
            field.name,
            field.type,
            field.label,
            field.type_name,
            field.options.packed,
            message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None,
        )
        for field in message.field
    }


def enums(message):
    return {enum.name: {value.name: value.number for value in enum.value} for enum in message.enum_type}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protoc", default="protoc-c")
    parser.add_argument("--proto", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "frontend/onnx.proto")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "ours.bin"
        subprocess.run(
            [arguments.protoc, f"--proto_path={arguments.proto.parent}", f"--descriptor_set_out={out}", arguments.proto],
            check=True,
        )
        ours = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]
    theirs = descriptor_pb2.FileDescriptorProto()
    reference.DESCRIPTOR.CopyToProto(theirs)

    mine, known = dict(messages(ours.message_type)), dict(messages(theirs.message_type))
    problems = [f"message {name} is missing" for name in known.keys() - mine.keys()]
    problems += [f"message {name} is not in the format" for name in mine.keys() - known.keys()]
    for name in mine.keys() & known.keys():
        have, want = fields(mine[name]), fields(known[name])
        for number in have.keys() | want.keys():
            if number not in want:
                if (name, have[number][0]) not in ADDED:
                    problems.append(f"{name}: field {number} {have[number][0]} is not in the format")
            elif number not in have:
                problems.append(f"{name}: field {number} {want[number][0]} is missing")
            elif have[number] != want[number]:
                problems.append(f"{name}: field {number} is {have[number]}, the format says {want[number]}")
        have, want = enums(mine[name]), enums(known[name])
        if have != want:
            problems.append(f"{name}: enums {have} differ from the format's {want}")
    for problem in sorted(problems):
        print(problem)
    print(f"{len(mine)} messages, {sum(len(m.field) for m in mine.values())} fields compared")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
