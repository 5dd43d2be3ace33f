"""gpucc's C interface (include/gpucc/runtime.h) by ctypes, for device tensors of PyTorch."""
import ctypes

MAX_RANK = 16


class Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * MAX_RANK)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.c_int64 * MAX_RANK), ("symbols", ctypes.c_char_p * MAX_RANK),
                ("alias_input", ctypes.c_int32)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_int32), ("threads", ctypes.c_int32),
                ("cuda_context", ctypes.c_void_p), ("allocator", ctypes.c_void_p), ("cpu_level", ctypes.c_int32)]


class Dim(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("low", ctypes.c_int64), ("high", ctypes.c_int64)]


class Dims(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("items", ctypes.POINTER(Dim)), ("count", ctypes.c_size_t)]


class Statistics(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in (
        "allocations", "prepares", "graphs_built", "enqueues", "arena_bytes", "weight_bytes", "code_bytes", "launches")]


def sized(structure):
    structure.size = ctypes.sizeof(structure)
    return structure


class Library:
    def __init__(self, path):
        self.api = ctypes.CDLL(str(path))
        self.api.gpucc_last_error.restype = ctypes.c_char_p
        self.api.gpucc_input_count.restype = self.api.gpucc_output_count.restype = ctypes.c_size_t

    def check(self, status):
        if status:
            raise RuntimeError(f"gpucc: status {status}: {self.api.gpucc_last_error().decode()}")


class Bundle:
    """A bundle on one device; outputs are allocated for the prepared dims."""

    def __init__(self, library, path, device=0):
        self.library, api = library, library.api
        self.model, self.context = ctypes.c_void_p(), ctypes.c_void_p()
        library.check(api.gpucc_open(str(path).encode(), None, ctypes.byref(self.model)))
        options = sized(ContextOptions(device=device))
        library.check(api.gpucc_context_create(self.model, ctypes.byref(options), ctypes.byref(self.context)))

    def infos(self, kind):
        api = self.library.api
        count = getattr(api, f"gpucc_{kind}_count")(self.model)
        infos = [sized(TensorInfo()) for _ in range(count)]
        for i, info in enumerate(infos):
            self.library.check(getattr(api, f"gpucc_{kind}_info")(self.model, ctypes.c_size_t(i), ctypes.byref(info)))
        return infos

    def prepare(self, dims):
        items = (Dim * max(1, len(dims)))(*[Dim(name.encode(), size, size) for name, size in dims.items()])
        table = sized(Dims(items=items, count=len(dims)))
        self.library.check(self.library.api.gpucc_prepare(self.context, ctypes.byref(table), None))

    def output_shape(self, index):
        rank, dims = ctypes.c_int32(), (ctypes.c_int64 * MAX_RANK)()
        self.library.check(self.library.api.gpucc_output_dims(self.context, ctypes.c_size_t(index), ctypes.byref(rank), dims))
        return list(dims[:rank.value])

    def bind(self, inputs, outputs, dtypes):
        """Lists of device tensors in the model's order."""
        def pack(tensors, kind):
            rows = (Tensor * max(1, len(tensors)))()
            for row, tensor, info in zip(rows, tensors, self.infos(kind)):
                row.size, row.data, row.dtype, row.rank = ctypes.sizeof(Tensor), tensor.data_ptr(), info.dtype, tensor.dim()
                row.bytes = tensor.numel() * tensor.element_size()
                row.dims[:tensor.dim()] = list(tensor.shape)
            return rows
        self.inputs, self.outputs, self.kept = pack(inputs, "input"), pack(outputs, "output"), (inputs, outputs)

    def enqueue(self, stream):
        status = self.library.api.gpucc_enqueue(self.context, ctypes.c_void_p(stream), self.inputs, self.outputs)
        if status:
            self.library.check(status)

    def statistics(self):
        figures = sized(Statistics())
        self.library.check(self.library.api.gpucc_context_statistics(self.context, ctypes.byref(figures)))
        return figures

    def close(self):
        self.library.api.gpucc_context_destroy(self.context)
        self.library.api.gpucc_close(self.model)
