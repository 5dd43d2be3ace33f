"""kokoro_tts (text to speech, int8, 3,614 nodes) through gpucc and ONNX Runtime.

    kokoro.py stages --gpucc PROGRAM --work DIR [--fetched DIR] [--device cpu|cuda:0] [--targets LIST] [--record FILE]
    kokoro.py whole  the same options
    kokoro.py prepare --gpucc PROGRAM --work DIR --targets TARGET --out FOLDER    the stages as a model of tests/gpu/run

The model quantises 139 activations as it runs, and its LSTMs their states. Where a rounding falls the other way the next
layers see another number: where ONNX Runtime itself runs it with the scales of the text encoder's norms moved by one part in
ten million, the audio is several frames longer or shorter and 2 to 20 dB away. So there are two checks.

stages: every quantised activation is an input of the graph as well, with ONNX Runtime's value; what the graph makes of its
own is an output, before and behind the quantisation: each stage is checked from equal inputs. Floats within TOLERANCE of the
largest; bytes may be one off where a rounding falls the other way, at most FLIPS of them. A state of an LSTM that is rounded
the other way moves those behind it: the middle one must be right, the others near. The phase of a spectrum is checked where
there is one: that of bins which hold nothing but rounding errors is noise in both.

whole: the model as it is, at several lengths of text, none known when compiling: the audio has the length that the
durations say (read after the run), is finite, and is as far from ONNX Runtime's, in frames and in the loudness of each, as
that is from itself when it is moved, or not much more.

Exit status 77 where the model is not fetched.
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import models  # noqa: E402

LENGTHS = [5, 12, 31, 64]
TOLERANCE, LSTM_TOLERANCE, FLIPS = 5e-5, 0.05, 1e-4
RANGE, SPECTRUM = "/encoder/Range", "/decoder/decoder/generator/Concat_3_output_0"
SKIPPED = 77


def inputs_of(length):
    generator = np.random.default_rng(length)
    tokens = generator.integers(1, 170, (1, length))
    tokens[0, 0] = tokens[0, -1] = 0
    return {"tokens": tokens, "style": (generator.standard_normal((1, 256)) * 0.1).astype(np.float32), "speed": np.ones(1, np.float32)}


def session(model):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run_bundle(options, bundle, feeds, count, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.pb"):
        old.unlink()
    command = [options.gpucc, "run", bundle, f"--device={options.device}", f"--output-dir={folder}", "--output-format=pb"]
    for number, (name, value) in enumerate(feeds.items()):
        path = folder / f"input_{number}.pb"
        path.write_bytes(numpy_helper.from_array(value, name).SerializeToString())
        command.append(f"--input={name}={path}")
    models.run_command(command)
    return [numpy_helper.to_array(TensorProto.FromString((folder / f"output_{i}.pb").read_bytes())) for i in range(count)]


def compile_model(options, model, name):
    path, bundle = options.work / f"{name}.onnx", options.work / f"{name}.so"
    options.work.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    models.run_command([options.gpucc, path, "-o", bundle, f"--target={options.targets}"])
    return bundle


# ---- stages


def find_cuts(model):
    """Values that are forced, with their types: quantised activations, results of quantised LSTMs, durations, and the steps of
    the alignment, whose number hangs on them."""
    used = {name for node in model.graph.node for name in node.input}
    cuts = {}
    for node in model.graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            types = (TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8)
        elif node.op_type in ("DynamicQuantizeLSTM", "Round"):
            types = (TensorProto.FLOAT,) * 3
        elif node.name == RANGE:
            types = (TensorProto.INT64,)
        else:
            continue
        cuts.update({name: dtype for name, dtype in zip(node.output, types) if name in used})
    return cuts


def quantised_values(model):
    """What is quantised, as floats."""
    return list(dict.fromkeys(node.input[0] for node in model.graph.node if node.op_type == "DynamicQuantizeLinear"))


def force(model, cuts, samples):
    """The graph with the cuts as inputs, and as outputs what it makes of them and what it quantises. Dims that differ between the
    samples are free."""
    forced = onnx.ModelProto()
    forced.CopyFrom(model)
    graph = forced.graph
    del graph.value_info[:]
    made = []
    for node in [n for n in graph.node if n.name == RANGE]:
        graph.node.remove(node)
    for node in graph.node:
        for i, name in enumerate(node.output):
            if name in cuts:
                node.output[i] = f"{name}!made"
                made.append(name)
    for number, (name, dtype) in enumerate(cuts.items()):
        shapes = [sample[name].shape for sample in samples]
        dims = [sizes[0] if len(set(sizes)) == 1 else f"d{number}_{axis}" for axis, sizes in enumerate(zip(*shapes))]
        graph.input.append(helper.make_tensor_value_info(name, dtype, dims))
    for name in made:
        graph.output.append(helper.make_tensor_value_info(f"{name}!made", cuts[name], None))
    values = quantised_values(model)
    graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in values)
    return forced, ["audio", *made, *values]


def spectrum_error(got, want):
    """In units of TOLERANCE. The oscillators' phases are sums of radians in f32 that grow with the length, and so does their
    error: 3e-7 a column for magnitudes, of the largest, and ten times that for the phases of bins that hold a hundredth of the
    largest, as points of the circle."""
    bins, allowed = want.shape[1] // 2, 3e-7 * want.shape[2]
    largest = np.abs(want[:, :bins]).max()
    there = want[:, :bins] > 1e-2 * largest
    turned = np.exp(1j * got[:, bins:].astype(np.float64)) - np.exp(1j * want[:, bins:].astype(np.float64))
    worst = max(np.abs(got[:, :bins] - want[:, :bins]).max() / largest, np.abs(turned[there]).max(initial=0) / 10)
    return TOLERANCE * worst / allowed


def stage_errors(names, got, want):
    """The largest error of all floats, the share of bytes that are one off; raises where one is wrong."""
    largest, flipped, bytes_in_all = 0.0, 0, 0
    of_spectrum = SPECTRUM.removesuffix("_output_0")
    for name, value in zip(names, got):
        reference = want[name]
        if value.shape != reference.shape or value.dtype != reference.dtype:
            raise RuntimeError(f"{name}: {value.dtype} {value.shape}, expected {reference.dtype} {reference.shape}")
        if name.startswith(of_spectrum) and name != SPECTRUM:
            continue  # its phases are noise where the spectrum is empty
        if value.dtype == np.uint8:
            apart = np.abs(value.astype(np.int16) - reference)
            if apart.max(initial=0) > 1:
                raise RuntimeError(f"{name}: a byte is {apart.max()} off")
            flipped += int((apart > 0).sum())
            bytes_in_all += apart.size
            continue
        error = spectrum_error(value, reference) if name == SPECTRUM else models.difference(value, reference)
        if "LSTM" in name and error <= LSTM_TOLERANCE:
            error = float(np.median(np.abs(value - reference)) / np.abs(reference).max())
        if not error <= TOLERANCE:
            raise RuntimeError(f"{name}: error {error:.2e}, allowed {TOLERANCE:.0e}")
        largest = max(largest, error)
    return largest, flipped / bytes_in_all


def reference_samples(model, cuts, lengths):
    """By ONNX Runtime: the audio, the cuts and what is quantised, for each length of text."""
    full = onnx.ModelProto()
    full.CopyFrom(model)
    for name, dtype in {**cuts, **dict.fromkeys(quantised_values(model), TensorProto.FLOAT)}.items():
        full.graph.output.append(helper.make_tensor_value_info(name, dtype, None))
    reference = session(full)
    names = [item.name for item in reference.get_outputs()]
    return [dict(zip(names, reference.run(None, inputs_of(length)))) for length in lengths]


def check_stages(options, model):
    cuts = find_cuts(model)
    samples = reference_samples(model, cuts, LENGTHS)
    forced, outputs = force(model, cuts, samples)
    bundle = compile_model(options, forced, "kokoro_stages")
    worst, flips = 0.0, 0.0
    for length, sample in zip(LENGTHS, samples):
        feeds = {**inputs_of(length), **{name: sample[name] for name in cuts}}
        got = run_bundle(options, bundle, feeds, len(outputs), options.work / "kokoro_stages")
        error, share = stage_errors(outputs, got, sample)
        print(f"ok    {length} tokens: {len(outputs)} stages, floats within {error:.1e}, {share:.1e} of the bytes one off", flush=True)
        worst, flips = max(worst, error), max(flips, share)
        if share > FLIPS:
            raise RuntimeError(f"{share:.1e} of the bytes are one off, allowed {FLIPS:.0e}")
    return {"stages.outputs": len(outputs), "stages.error": worst, "stages.flips": flips}


def prepare(options, model):
    """Of the outputs the audio and what is quantised are compared, but for the spectrum."""
    lengths, cuts = LENGTHS[:2], find_cuts(model)
    samples = reference_samples(model, cuts, lengths)
    forced, outputs = force(model, cuts, samples)
    bundle = compile_model(options, forced, "kokoro_stages")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "bundle.so").write_bytes(bundle.read_bytes())
    (options.out / "kernels.hash").write_text("")
    compared = [i for i, name in enumerate(outputs) if not name.endswith("!made") and name != SPECTRUM]
    for number, (length, sample) in enumerate(zip(lengths, samples)):
        folder = options.out / f"set{number}"
        folder.mkdir(exist_ok=True)
        feeds = {**inputs_of(length), **{name: sample[name] for name in cuts}}
        for i, value in enumerate(feeds.values()):
            np.save(folder / f"input_{i}.npy", value)
        (folder / "inputs").write_text("".join(f"{name}=input_{i}.npy\n" for i, name in enumerate(feeds)))
        for i in compared:
            np.save(folder / f"output_{i}.npy", sample[outputs[i]])
        (folder / "outputs").write_text("".join(f"{i} {TOLERANCE}\n" for i in compared))
    return {"stages.compared": len(compared)}


# ---- whole


def loudness(audio):
    """Of every frame of 600 samples, in decibels."""
    frames = audio[: audio.size // 600 * 600].reshape(-1, 600).astype(np.float64)
    return 10 * np.log10(np.mean(frames**2, axis=1) + 1e-12)


def distance(a, b):
    """Decibels between frames of the same number, the middle one."""
    a, b = loudness(a), loudness(b)
    count = min(len(a), len(b))
    return float(np.median(np.abs(a[:count] - b[:count])))


def moved(model, seed):
    """The same with the vectors of the text encoder's norms and biases off by a rounding."""
    generator = np.random.default_rng(seed)
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for tensor in other.graph.initializer:
        if "bert" in tensor.name and tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 1:
            values = numpy_helper.to_array(tensor)
            values = values * (1 + 1e-7 * generator.standard_normal(values.shape))
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float32), tensor.name))
    return other


def check_whole(options, model):
    reference, others = session(model), [session(moved(model, seed)) for seed in range(3)]
    bundle = compile_model(options, model, "kokoro_tts")
    worst, apart = 0.0, 0
    for length in LENGTHS:
        feeds = inputs_of(length)
        want = reference.run(None, feeds)[0]
        (got,) = run_bundle(options, bundle, feeds, 1, options.work / "kokoro_whole")
        if got.size == 0 or got.size % 600 or not np.isfinite(got).all():
            raise RuntimeError(f"{length} tokens: audio of {got.size} samples, finite: {np.isfinite(got).all()}")
        own = [other.run(None, feeds)[0] for other in others]
        frames, own_frames = abs(got.size - want.size) // 600, max(abs(audio.size - want.size) for audio in own) // 600
        decibels, own_decibels = distance(got, want), max(distance(audio, want) for audio in own)
        print(f"ok    {length} tokens: {got.size} samples; {frames} frames and {decibels:.1f} dB from ONNX Runtime, which is up to "
              f"{own_frames} frames and {own_decibels:.1f} dB from itself", flush=True)
        if frames > own_frames + 2 + length // 8 or decibels > 1.5 * own_decibels + 3:
            raise RuntimeError(f"{length} tokens: too far from ONNX Runtime")
        worst, apart = max(worst, decibels - own_decibels), max(apart, frames - own_frames)
    return {"whole.lengths": len(LENGTHS), "whole.decibels_beyond_own": worst, "whole.frames_beyond_own": apart}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = {"stages": check_stages, "whole": check_whole, "prepare": prepare}
    parser.add_argument("action", choices=actions)
    parser.add_argument("--gpucc", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--fetched", type=pathlib.Path, default=HERE.parent.parent / ".cache" / "models")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", default="cpu")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    path = options.fetched / "kokoro_tts.onnx"
    if not path.is_file():
        print(f"{path.name} is not fetched (scripts/fetch_models): skipped")
        return SKIPPED
    try:
        figures = actions[options.action](options, onnx.load(path))
    except RuntimeError as problem:
        print(f"FAIL  kokoro_tts: {problem}")
        return 1
    if options.record:
        models.write_record(options.record, figures)
    print(" ".join(f"{name} = {value:.3g}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
