"""An ONNX graph as PyTorch eager calls: what a model's author would run, for fair timing beside a bundle.

The graph is walked once at fixed dims. Whatever hangs on shapes and small integer constants alone is computed then, on the
host; every other node becomes one step, one PyTorch call on device tensors (a few operators need two, as in eager code).
`Eager.run` replays the steps. Covers the operators of the models in tests/models; others are an error that names them.
"""
import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

TORCH_TYPES = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64,
               9: torch.bool, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16}


def attribute_values(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def ints(tensor):
    return None if tensor is None else [int(v) for v in tensor.reshape(-1).tolist()]


def same_padding(x, attributes, kernel, strides, dilations):
    """begin, end a spatial axis, as the attributes say."""
    rank = x.dim() - 2
    mode = attributes.get("auto_pad", b"NOTSET").decode()
    if mode in ("NOTSET", "VALID"):
        pads = attributes.get("pads", [0] * 2 * rank) if mode == "NOTSET" else [0] * 2 * rank
        return pads[:rank], pads[rank:]
    begin, end = [], []
    for i in range(rank):
        out = -(-x.shape[2 + i] // strides[i])
        total = max(0, (out - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - x.shape[2 + i])
        small = total // 2
        begin.append(small if mode == "SAME_UPPER" else total - small)
        end.append(total - begin[-1])
    return begin, end


def pad_spatial(x, begin, end, value):
    """The input, padded where the two ends differ, and what the call itself may pad."""
    if begin == end:
        return x, list(begin)
    pads = [p for i in reversed(range(len(begin))) for p in (begin[i], end[i])]
    return F.pad(x, pads, value=value), [0] * len(begin)


def conv(a, x, w, b=None):
    rank = x.dim() - 2
    strides, dilations = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    x, pads = pad_spatial(x, *same_padding(x, a, w.shape[2:], strides, dilations), 0.0)
    return (F.conv1d, F.conv2d, F.conv3d)[rank - 1](x, w, b, strides, pads, dilations, a.get("group", 1))


def max_pool(a, x):
    kernel = a["kernel_shape"]
    strides, dilations = a.get("strides", [1] * len(kernel)), a.get("dilations", [1] * len(kernel))
    x, pads = pad_spatial(x, *same_padding(x, a, kernel, strides, dilations), float("-inf"))
    call = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(kernel) - 1]
    return call(x, kernel, strides, pads, dilations, bool(a.get("ceil_mode", 0)))


def average_pool(a, x):
    kernel = a["kernel_shape"]
    strides = a.get("strides", [1] * len(kernel))
    begin, end = same_padding(x, a, kernel, strides, [1] * len(kernel))
    counts = bool(a.get("count_include_pad", 0))
    if begin == end:
        return F.avg_pool2d(x, kernel, strides, begin, bool(a.get("ceil_mode", 0)), counts)
    padded, _ = pad_spatial(x, begin, end, 0.0)
    sums = F.avg_pool2d(padded, kernel, strides)
    if counts:
        return sums
    ones, _ = pad_spatial(torch.ones_like(x[:1, :1]), begin, end, 0.0)
    return sums / F.avg_pool2d(ones, kernel, strides)


def gemm(a, x, w, c=None):
    x = x.t() if a.get("transA") else x
    alpha, beta = a.get("alpha", 1.0), a.get("beta", 1.0)
    if a.get("transB") and alpha == 1 and beta == 1 and (c is None or c.dim() == 1):
        return F.linear(x, w, c)
    w = w.t() if a.get("transB") else w
    return torch.addmm(c, x, w, beta=beta, alpha=alpha) if c is not None else alpha * (x @ w)


def layer_norm(a, x, scale, bias=None):
    axis = a.get("axis", -1)
    return F.layer_norm(x, x.shape[axis if axis < 0 else axis - x.dim():], scale, bias, a.get("epsilon", 1e-5))


def reduction(call):
    def reduce(a, x, axes=None):
        axes = ints(axes) or a.get("axes") or list(range(x.dim()))
        return call(x, dim=axes, keepdim=bool(a.get("keepdims", 1)))
    return reduce


def global_pool(call):
    return lambda a, x: call(x, dim=list(range(2, x.dim())), keepdim=True)


def gather(a, x, indices):
    axis = a.get("axis", 0)
    if indices.dim() == 0 and indices.device.type == "cpu":
        return x.select(axis, int(indices))
    if axis == 0 and x.dim() == 2 and indices.device == x.device:
        return F.embedding(torch.where(indices < 0, indices + x.shape[0], indices) if a["negative"] else indices, x)
    shape = list(x.shape[:axis]) + list(indices.shape) + list(x.shape[axis:][1:])
    return x.index_select(axis, indices.reshape(-1).to(x.device)).reshape(shape)


def gather_nd(a, x, indices):
    batch, depth = a.get("batch_dims", 0), indices.shape[-1]
    parts = list(indices.to(x.device).unbind(-1))
    for i in range(batch):
        shape = [1] * parts[0].dim() if parts else []
        shape[i] = x.shape[i]
        parts.insert(i, torch.arange(x.shape[i], device=x.device).reshape(shape))
    assert len(parts) == batch + depth
    return x[tuple(parts)]


def reshape(a, x, shape):
    sizes = [x.shape[i] if s == 0 and not a.get("allowzero") else s for i, s in enumerate(ints(shape))]
    return x.reshape(sizes)


def slice_(a, x, starts=None, ends=None, axes=None, steps=None):
    starts = ints(starts) if starts is not None else a["starts"]
    ends = ints(ends) if ends is not None else a["ends"]
    axes = ints(axes) if axes is not None else a.get("axes", list(range(len(starts))))
    steps = ints(steps) if steps is not None else [1] * len(starts)
    where = [slice(None)] * x.dim()
    for begin, end, axis, step in zip(starts, ends, axes, steps):
        if step < 0:
            x = x.flip(axis)
            size = x.shape[axis]
            begin, end, step = size - 1 - min(begin, size - 1), size - 1 - max(end, -size - 1), -step
        where[axis] = slice(begin, end, step)
    return x[tuple(where)]


def split(a, x, sizes=None):
    axis = a.get("axis", 0)
    sizes = ints(sizes) or a.get("split") or [-(-x.shape[axis] // a["outputs"])] * a["outputs"]
    sizes[-1] = x.shape[axis] - sum(sizes[:-1])
    return torch.split(x, sizes, axis)


def resize(a, x, roi=None, scales=None, sizes=None):
    mode = {b"nearest": "nearest", b"linear": "bilinear"}[a.get("mode", b"nearest")]
    where = a.get("coordinate_transformation_mode", b"half_pixel")
    size = ints(sizes)[2:] if sizes is not None and sizes.numel() else \
        [int(s * f) for s, f in zip(x.shape[2:], scales.tolist()[2:])]
    corners = {"align_corners": where == b"align_corners"} if mode != "nearest" else {}
    return F.interpolate(x, size=size, mode=mode, **corners)


def depth_to_space(a, x):
    size, (n, c, h, w) = a["blocksize"], x.shape
    if a.get("mode", b"DCR") == b"CRD":
        return F.pixel_shuffle(x, size)
    return x.reshape(n, size, size, c // size ** 2, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, -1, h * size, w * size)


def squeeze(a, x, axes=None):
    axes = ints(axes) or a.get("axes")
    return x.squeeze(tuple(axes)) if axes else x.squeeze()


def unsqueeze(a, x, axes=None):
    axes = ints(axes) or a["axes"]
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


def expand(a, x, shape):
    return x.expand(torch.broadcast_shapes(x.shape, ints(shape)))


def divide(a, x, y):
    return torch.div(x, y) if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


def flatten(a, x):
    axis = a.get("axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis])) if axis else 1, -1)


def constant_of_shape(a, shape):
    value = torch.from_numpy(numpy_helper.to_array(a["value"]).copy()) if "value" in a else torch.zeros(1)
    return value.reshape([1] * len(ints(shape))).expand(ints(shape)) if ints(shape) else value.reshape([])


def constant(a):
    if "value" in a:
        return torch.from_numpy(numpy_helper.to_array(a["value"]).copy())
    value = next(a[key] for key in ("value_int", "value_ints", "value_float", "value_floats") if key in a)
    return torch.tensor(value)


def clip(a, x, low=None, high=None):
    low = a.get("min") if low is None else float(low)
    high = a.get("max") if high is None else float(high)
    return x.clamp(low, high)


def where(a, c, x, y):
    return torch.where(c, x, y)


def shape_of(a, x):
    return torch.tensor(list(x.shape))[a.get("start", 0):a.get("end")]


def plain(call):
    return lambda a, *inputs: call(*inputs)


OPERATORS = {
    "Add": plain(torch.add), "And": plain(torch.logical_and), "AveragePool": average_pool,
    "Cast": lambda a, x: x.to(TORCH_TYPES[a["to"]]), "Clip": clip,
    "Concat": lambda a, *x: torch.cat(x, a["axis"]), "Constant": constant, "ConstantOfShape": constant_of_shape,
    "Conv": conv, "Cos": plain(torch.cos), "DepthToSpace": depth_to_space, "Div": divide, "Equal": plain(torch.eq),
    "Erf": plain(torch.erf), "Exp": plain(torch.exp), "Expand": expand, "Flatten": flatten, "Gather": gather,
    "GatherND": gather_nd, "Gemm": gemm, "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", b"none").decode()),
    "GlobalAveragePool": global_pool(torch.mean), "GlobalMaxPool": global_pool(torch.amax),
    "GreaterOrEqual": plain(torch.ge), "Identity": plain(lambda x: x),
    "InstanceNormalization": lambda a, x, s, b: F.instance_norm(x, weight=s, bias=b, eps=a.get("epsilon", 1e-5)),
    "IsNaN": plain(torch.isnan), "LayerNormalization": layer_norm, "LessOrEqual": plain(torch.le),
    "MatMul": plain(torch.matmul), "Max": plain(torch.maximum), "MaxPool": max_pool, "Mul": plain(torch.mul),
    "Pow": plain(torch.pow), "Range": plain(lambda x, y, z: torch.arange(x.item(), y.item(), z.item(), dtype=x.dtype)),
    "Reciprocal": plain(torch.reciprocal), "ReduceMax": reduction(torch.amax), "ReduceMean": reduction(torch.mean),
    "ReduceSum": reduction(torch.sum), "Relu": plain(torch.relu), "Reshape": reshape, "Resize": resize, "Shape": shape_of,
    "Sigmoid": plain(torch.sigmoid), "Sin": plain(torch.sin), "Slice": slice_,
    "Softmax": lambda a, x: torch.softmax(x, a.get("axis", -1)), "Split": split, "Sqrt": plain(torch.sqrt),
    "Squeeze": squeeze, "Sub": plain(torch.sub), "Tanh": plain(torch.tanh),
    "Transpose": lambda a, x: x.permute(a.get("perm", list(reversed(range(x.dim()))))), "Unsqueeze": unsqueeze, "Where": where,
}
# Arguments that PyTorch takes as numbers: they stay on the host.
HOST_ARGUMENTS = {"Reshape": {1}, "Slice": {1, 2, 3, 4}, "Expand": {1}, "Squeeze": {1}, "Unsqueeze": {1}, "Split": {1},
                  "Resize": {1, 2, 3}, "Clip": {1, 2}, "ReduceMax": {1}, "ReduceMean": {1}, "ReduceSum": {1}, "Gather": {1},
                  "ConstantOfShape": {0}, "Range": {0, 1, 2}}


class Eager:
    """`inputs`: name -> device tensor; the steps are for exactly their sizes."""

    def __init__(self, path, inputs, device):
        model = onnx.load(str(path))
        self.device = device
        self.values = dict(inputs)
        self.host = set()  # names of values that hang on shapes and small constants alone
        self.steps = []
        for item in model.graph.initializer:
            tensor = torch.from_numpy(numpy_helper.to_array(item).copy())
            if tensor.dim() == 0 or (not tensor.is_floating_point() and tensor.numel() <= 64):
                self.host.add(item.name)
            else:
                tensor = tensor.to(device)
            self.values[item.name] = tensor
        for node in model.graph.node:
            self.add(node)
        self.outputs = [self.on_device(item.name) for item in model.graph.output]

    def on_device(self, name):
        if name not in self.host:
            return name
        copy = name + "@device"
        if copy not in self.values:
            self.values[copy] = self.values[name].to(self.device)
        return copy

    def add(self, node):
        if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx"):
            raise NotImplementedError(f"{node.domain}:{node.op_type}")
        attributes = attribute_values(node)
        attributes["outputs"] = len(node.output)
        names = list(node.input)
        while names and not names[-1]:
            names.pop()
        on_host = node.op_type == "Shape" or all(not name or name in self.host for name in names)
        if not on_host:
            keep = HOST_ARGUMENTS.get(node.op_type, set())
            scalar_index = node.op_type == "Gather" and self.values[names[1]].dim() == 0
            names = [name if not name or i in keep and (node.op_type != "Gather" or scalar_index) else self.on_device(name)
                     for i, name in enumerate(names)]
        if node.op_type == "Gather":
            attributes["negative"] = bool((self.values[names[1]] < 0).any())
        call = OPERATORS[node.op_type]
        results = call(attributes, *[self.values[name] if name else None for name in names])
        results = results if isinstance(results, (tuple, list)) else [results]
        self.values.update(zip(node.output, results))
        if on_host:
            self.host.update(node.output)
        else:
            self.steps.append((call, attributes, names, list(node.output)))

    def run(self):
        values = self.values
        for call, attributes, names, outputs in self.steps:
            results = call(attributes, *[values[name] if name else None for name in names])
            if isinstance(results, (tuple, list)):
                values.update(zip(outputs, results))
            else:
                values[outputs[0]] = results
        return [values[name] for name in self.outputs]
