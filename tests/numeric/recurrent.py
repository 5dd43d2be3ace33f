"""LSTM, GRU and RNN: directions, biases, first states, sequence lengths, peepholes, clip, activations, layout; against ONNX
Runtime, and where it has no `layout`, against its own result of the other one."""
import numpy as np
from numeric import Case, expected_of

OPSET = 14
TOLERANCE = 2e-6
INPUT, HIDDEN = 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {"LSTM": ["HardSigmoid", "Softsign", "ScaledTanh"], "GRU": ["HardSigmoid", "LeakyRelu"], "RNN": ["Affine"]}
ALPHA = {"HardSigmoid": 0.3, "ScaledTanh": 1.2, "LeakyRelu": 0.1, "Affine": 0.8, "ThresholdedRelu": 0.2}
BETA = {"HardSigmoid": 0.4, "ScaledTanh": 0.9, "Affine": 0.1}


def activations(names, directions):
    names = names * directions
    found = {"activations": names}
    for key, table in (("activation_alpha", ALPHA), ("activation_beta", BETA)):
        values = [table[name] for name in names if name in table]
        if values:
            found[key] = values
    return found


def case(generator, op, direction, steps=4, batch=3, bias=False, states=False, lengths=False, peepholes=False, text="",
         at_run_time=False, **attributes):
    directions = 2 if direction == "bidirectional" else 1
    gates = GATES[op]

    def draw(*shape):
        return (generator.standard_normal(shape) * 0.5).astype(np.float32)

    inputs = [draw(steps, batch, INPUT), draw(directions, gates * HIDDEN, INPUT), draw(directions, gates * HIDDEN, HIDDEN),
              draw(directions, 2 * gates * HIDDEN) if bias else None,
              generator.integers(1, steps + 1, batch).astype(np.int32) if lengths else None,
              draw(directions, batch, HIDDEN) if states else None]
    if op == "LSTM":
        inputs += [draw(directions, batch, HIDDEN) if states else None, draw(directions, 3 * HIDDEN) if peepholes else None]
    while inputs[-1] is None:
        inputs.pop()
    weights = [i for i in (1, 2, 3, 7) if i < len(inputs) and inputs[i] is not None]
    return Case(f"{op} {direction} {text}", op, inputs, "ort", {"hidden_size": HIDDEN, "direction": direction, **attributes},
                [1] * (3 if op == "LSTM" else 2), TOLERANCE, () if at_run_time else tuple(weights),
                tuple((i, axis) for i in weights for axis in range(inputs[i].ndim)) + ((0, 2), (5, 0), (5, 2), (6, 0), (6, 2)))


def batch_first(made):
    """The same with batch and time exchanged, which ONNX Runtime's CPU does not have."""
    inputs = list(made.inputs)
    for i in (0, 5, 6):
        if i < len(inputs) and inputs[i] is not None:
            inputs[i] = np.ascontiguousarray(inputs[i].swapaxes(0, 1))
    expected = expected_of(made, OPSET)
    expected = [expected[0].transpose(2, 0, 1, 3)] + [x.swapaxes(0, 1) for x in expected[1:]]
    return Case(made.name + " batch first", made.op, inputs, [np.ascontiguousarray(x) for x in expected],
                {**made.attributes, "layout": 1}, made.outputs, made.tolerance, made.constant,
                ((0, 2), (5, 1), (5, 2), (6, 1), (6, 2)) + tuple(pair for pair in made.fixed if pair[0] in made.constant))


def cases():
    generator = np.random.default_rng(3)
    made = []
    for op in GATES:
        for direction in ("forward", "reverse", "bidirectional"):
            directions = 2 if direction == "bidirectional" else 1
            made += [
                case(generator, op, direction, text="bare"),
                case(generator, op, direction, bias=True, states=True, text="states"),
                case(generator, op, direction, bias=True, lengths=True, text="lengths"),
                case(generator, op, direction, bias=True, lengths=True, states=True, text="activations",
                     **activations(ACTIVATIONS[op], directions)),
            ]
        made.append(case(generator, op, "forward", bias=True, clip=0.7, text="clip"))
        made.append(case(generator, op, "forward", 1, 1, bias=True, states=True, text="one step"))
        made.append(case(generator, op, "reverse", 5, 2, bias=True, states=True, text="weights at run time", at_run_time=True))
        made.append(batch_first(case(generator, op, "bidirectional", bias=True, states=True)))
    for direction in ("forward", "reverse"):
        made.append(case(generator, "GRU", direction, bias=True, linear_before_reset=1, text="linear before reset"))
        made.append(case(generator, "LSTM", direction, bias=True, states=True, peepholes=True, text="peepholes"))
        made.append(case(generator, "LSTM", direction, bias=True, peepholes=True, input_forget=1, clip=0.9, text="coupled"))
    for name in ("Relu", "Elu", "Softplus", "Sigmoid", "ThresholdedRelu"):
        made.append(case(generator, "RNN", "forward", text=name, **activations([name], 1)))
    return made
