"""NonMaxSuppression: ties, per class, both forms of boxes, thresholds, limits, opsets 10 and 11, 1 to 10^5 boxes."""
import numpy as np
from numeric import Case

OPSET = 11
I64 = 7
TWICE = ("fixed", "free")


def overlap(a, b, center):
    half = np.float32(2)
    if center:
        low = [(x[:2] - x[2:] / half) for x in (a, b)]
        high = [(x[:2] + x[2:] / half) for x in (a, b)]
    else:
        low = [np.minimum(x[:2], x[2:]) for x in (a, b)]
        high = [np.maximum(x[:2], x[2:]) for x in (a, b)]
    sides = np.minimum(high[0], high[1]) - np.maximum(low[0], low[1])
    areas = [(h - l)[0] * (h - l)[1] for l, h in zip(low, high)]
    inter = sides[0] * sides[1]
    union = areas[0] + areas[1] - inter
    if sides.min() <= 0 or inter <= 0 or min(areas) <= 0 or union <= 0:
        return np.float32(0)
    return inter / union


def suppress(boxes, scores, most, threshold, least, center):
    """Written from the specification: per batch and class, by falling score, the earlier of equal ones first."""
    found = []
    for batch in range(scores.shape[0]):
        for cls in range(scores.shape[1]):
            kept = []
            for at in np.argsort(-scores[batch, cls], kind="stable"):
                if len(kept) >= most or (least is not None and not scores[batch, cls, at] > least):
                    break
                if all(not overlap(boxes[batch, at], boxes[batch, k], center) > threshold for k in kept):
                    kept.append(at)
            found += [[batch, cls, at] for at in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def case(name, boxes, scores, most=None, threshold=None, least=None, center=0, expected=None, **more):
    inputs = [boxes, scores, None if most is None else np.array([most], np.int64),
              None if threshold is None else np.array([threshold], np.float32),
              None if least is None else np.array([least], np.float32)]
    while inputs[-1] is None:
        inputs.pop()
    wanted = expected or [suppress(boxes, scores, most or 0, np.float32(threshold or 0), least, center)]
    return Case(f"NonMaxSuppression {name}", "NonMaxSuppression", inputs, wanted, {"center_point_box": center},
                outputs=[I64] if expected else None, **more)


def random_boxes(generator, batches, count, center, size=0.3):
    boxes = generator.random((batches, count, 4)).astype(np.float32)
    boxes[..., 2:] *= np.float32(size)
    if not center:
        boxes[..., 2:] += boxes[..., :2]
        boxes[:, ::3] = boxes[:, ::3][..., [2, 1, 0, 3]]  # corners in any order
    return boxes


def cases():
    generator = np.random.default_rng(11)
    made = []
    for center in (0, 1):
        for batches, classes, count in ((1, 1, 1), (2, 3, 17), (1, 2, 300)):
            boxes = random_boxes(generator, batches, count, center)
            scores = generator.random((batches, classes, count)).astype(np.float32)
            ties = np.round(scores * 4) / np.float32(4)
            name = f"of {batches} x {classes} x {count}, center={center}"
            made.append(case(name, boxes, scores, 10, 0.3, 0.4, center))
            made.append(case(name + ", by ONNX Runtime", boxes, scores, 10, 0.3, 0.4, center, expected="ort"))
            made.append(case(name + ", ties", boxes, ties, 400, 0.2, 0.25, center))
            made.append(case(name + ", ties, by ONNX Runtime", boxes, ties, 400, 0.2, 0.25, center, expected="ort"))
            made.append(case(name + ", no least score", boxes, scores, 5, 0.5, None, center))
            made.append(case(name + ", all that overlap go", boxes, scores, 7, None, 0.1, center))
    boxes, scores = random_boxes(generator, 1, 20, 0), generator.random((1, 2, 20)).astype(np.float32)
    made.append(case("no limit stated: none is kept", boxes, scores))
    made.append(case("a negative limit", boxes, scores, -1, 0.5))
    made.append(case("no boxes", boxes[:, :0], scores[..., :0], 5, 0.5, modes=TWICE + ("plain",)))
    made.append(case("no score is high enough", boxes, scores, 5, 0.5, 2))
    flat = np.tile(np.array([0, 0, 1, 1], np.float32), (1, 20, 1))
    made.append(case("equal boxes", flat, scores, 5, 0.5))
    made.append(case("boxes without an area", np.zeros((1, 20, 4), np.float32), scores, 50, 0.5))
    for count in (255, 256, 257, 1000, 5000):
        boxes = random_boxes(generator, 1, count, 0, 0.1)
        made.append(case(f"of {count}", boxes, generator.random((1, 1, count)).astype(np.float32), 60, 0.2, 0.05, expected="ort",
                         modes=TWICE))
    boxes = random_boxes(generator, 1, 100000, 0, 0.05)
    made.append(case("of 10^5", boxes, generator.random((1, 1, 100000)).astype(np.float32), 100, 0.3, 0.5, expected="ort", modes=TWICE))
    return made
