"""Operators through gpucc on the CPU against independent references.

    numeric.py --gpucc PROGRAM --work DIR [--only TEXT] [--device cpu|cuda:0] [--targets LIST] MODULE ...

A module holds `cases()`, a list of Case: one node, its inputs, and what must come out: arrays, or the name of who says
so ("ort": ONNX Runtime; "onnx": the reference implementation of the onnx package). All cases of a module make one model,
which is compiled and run four times: with every size fixed, with every dim of every input free, the same without
optimisation (-O0), and with the inputs as initialisers, so that the compiler folds the nodes or the init program runs them. In the last one an input of one element
feeds the graph's only input, so that the model has one.
"""
import argparse
import dataclasses
import importlib.util
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

MODES = ("fixed", "free", "plain", "folded")


@dataclasses.dataclass
class Case:
    name: str
    op: str
    inputs: list  # arrays; None: absent
    expected: object  # arrays, "ort" or "onnx"
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: list = None  # element types (TensorProto numbers); None: as the first input; 0: absent
    tolerance: float = 0.0  # of max |difference| / max |reference|
    constant: tuple = ()  # inputs that are initialisers in every mode
    fixed: tuple = ()  # (input, axis) that are never free
    modes: tuple = MODES
    opset: int = 0  # 0: the module's
    any_order: bool = False  # rows of the result may stand in any order
    domain: str = ""  # of the operator


def dtype_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def opset_imports(opset):
    return [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]


def single_model(case, opset):
    names = [f"i{i}" if x is not None else "" for i, x in enumerate(case.inputs)]
    count = len(case.outputs) if case.outputs else 1 if isinstance(case.expected, str) else len(case.expected)
    outputs = [f"o{i}" if not case.outputs or case.outputs[i] != 0 else "" for i in range(count)]
    node = helper.make_node(case.op, names, outputs, domain=case.domain, **case.attributes)
    infos = [helper.make_tensor_value_info(n, dtype_of(x), x.shape) for n, x in zip(names, case.inputs) if n]
    types = case.outputs or [None] * count
    results = [helper.make_tensor_value_info(n, t or dtype_of(case.inputs[0]), None) for n, t in zip(outputs, types) if n]
    graph = helper.make_graph([node], "single", infos, results)
    return helper.make_model(graph, opset_imports=opset_imports(opset), ir_version=10)


def expected_of(case, opset):
    if not isinstance(case.expected, str):
        return [np.asarray(x) for x in case.expected]
    model = single_model(case, case.opset or opset)
    feeds = {f"i{i}": x for i, x in enumerate(case.inputs) if x is not None}
    if case.expected == "onnx":
        return [np.asarray(x) for x in ReferenceEvaluator(model).run(None, feeds)]
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"]).run(None, feeds)


def build_model(cases, expected, mode, opset):
    nodes, infos, constants, results, feeds, wanted = [], [], [], [], {}, []
    for number, case in enumerate(cases):
        names = []
        for i, x in enumerate(case.inputs):
            name = f"c{number}_{i}" if x is not None else ""
            names.append(name)
            if x is None:
                continue
            tensor = numpy_helper.from_array(np.asarray(x), name)
            if mode == "folded" or i in case.constant:
                constants.append(tensor)
                continue
            shape = [size if mode == "fixed" or (i, axis) in case.fixed else f"d{number}_{i}_{axis}"
                     for axis, size in enumerate(x.shape)]
            infos.append(helper.make_tensor_value_info(name, tensor.data_type, shape))
            feeds[name] = tensor
        outputs = []
        values = iter(expected[number])
        count = len(case.outputs) if case.outputs else len(expected[number])
        for i in range(count):
            if case.outputs and case.outputs[i] == 0:
                outputs.append("")
                continue
            value = next(values)
            outputs.append(f"r{number}_{i}")
            dtype = case.outputs and case.outputs[i] or dtype_of(value)
            results.append(helper.make_tensor_value_info(outputs[-1], dtype, [None] * value.ndim))
            wanted.append((case, i, value))
        nodes.append(helper.make_node(case.op, names, outputs, name=case.name, domain=case.domain,
                                      **case.attributes))
    if not infos:
        infos.append(helper.make_tensor_value_info("seed", TensorProto.FLOAT, [1]))
        feeds["seed"] = numpy_helper.from_array(np.ones(1, np.float32), "seed")
        nodes.append(helper.make_node("Identity", ["seed"], ["seed_out"]))
        results.append(helper.make_tensor_value_info("seed_out", TensorProto.FLOAT, [1]))
    graph = helper.make_graph(nodes, "cases", infos, results, constants)
    model = helper.make_model(graph, opset_imports=opset_imports(opset), ir_version=13)
    return model, feeds, wanted


def run(command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\nexit status {result.returncode}\n{result.stderr.strip()[:4000]}")


def problem_of(case, got, want):
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if case.any_order:
        got, want = (np.array(sorted(map(tuple, x.reshape(len(x), -1).tolist()))) for x in (got, want))
    if got.size == 0:
        return None
    if np.issubdtype(want.dtype, np.integer) or want.dtype == bool:
        equal = got == want
    else:
        a, e = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(e)
        largest = np.abs(e[finite]).max(initial=0)
        with np.errstate(invalid="ignore"):
            equal = (a == e) | (np.isnan(a) & np.isnan(e)) | (finite & (np.abs(a - e) <= case.tolerance * largest))
    if equal.all():
        return None
    at = np.unravel_index(np.argmin(equal), equal.shape)
    return f"{(~equal).sum()} of {equal.size} elements differ, first {at}: {got[at]}, expected {want[at]}"


def check(cases, expected, mode, opset, options, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model, feeds, wanted = build_model(cases, expected, mode, opset)
    onnx.save(model, folder / "model.onnx")
    run([options.gpucc, folder / "model.onnx", "-o", folder / "model.so", f"--target={options.targets}",
         "-O0" if mode == "plain" else "-O3"])
    command = [options.gpucc, "run", folder / "model.so", f"--device={options.device}", f"--output-dir={folder}",
               "--output-format=pb"]
    for name, tensor in feeds.items():
        (folder / f"{name}.pb").write_bytes(tensor.SerializeToString())
        command.append(f"--input={name}={folder / name}.pb")
    for old in folder.glob("output_*.pb"):
        old.unlink()
    run(command)
    problems = []
    for number, (case, output, value) in enumerate(wanted):
        tensor = TensorProto.FromString((folder / f"output_{number}.pb").read_bytes())
        problem = problem_of(case, numpy_helper.to_array(tensor), value)
        if problem:
            problems.append(f"{case.name} ({mode}), output {output}: {problem}")
    return len(wanted), problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", default="cpu")
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("modules", nargs="+")
    options = parser.parse_args()
    sys.modules["numeric"] = sys.modules["__main__"]
    failed = 0
    for name in options.modules:
        spec = importlib.util.spec_from_file_location(name, pathlib.Path(__file__).parent / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        cases = [case for case in module.cases() if options.only in case.name]
        for opset in sorted({case.opset or module.OPSET for case in cases}):
            for mode in [options.mode] if options.mode else MODES:
                chosen = [c for c in cases if (c.opset or module.OPSET) == opset and mode in c.modes]
                if not chosen:
                    continue
                expected = [expected_of(case, module.OPSET) for case in chosen]
                folder = options.work / name / f"{mode}_{opset}"
                count, problems = check(chosen, expected, mode, opset, options, folder)
                failed += len(problems)
                for problem in problems:
                    print(f"FAIL  {problem}")
                print(f"{name}, opset {opset}, {mode}: {count - len(problems)} of {count} results right", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
