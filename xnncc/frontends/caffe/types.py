"""Names of layer types: what the words of V1 files and of forks mean today, and why some types are not supported."""

from __future__ import annotations

V1_TYPES: dict[str, str] = {
    "ABSVAL": "AbsVal", "ACCURACY": "Accuracy", "ARGMAX": "ArgMax", "BNLL": "BNLL", "CONCAT": "Concat",
    "CONTRASTIVE_LOSS": "ContrastiveLoss", "CONVOLUTION": "Convolution", "DATA": "Data",
    "DECONVOLUTION": "Deconvolution", "DROPOUT": "Dropout", "DUMMY_DATA": "DummyData", "ELTWISE": "Eltwise",
    "EUCLIDEAN_LOSS": "EuclideanLoss", "EXP": "Exp", "FLATTEN": "Flatten", "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output", "HINGE_LOSS": "HingeLoss", "IM2COL": "Im2col", "IMAGE_DATA": "ImageData",
    "INFOGAIN_LOSS": "InfogainLoss", "INNER_PRODUCT": "InnerProduct", "LRN": "LRN", "MEMORY_DATA": "MemoryData",
    "MULTINOMIAL_LOGISTIC_LOSS": "MultinomialLogisticLoss", "MVN": "MVN", "POOLING": "Pooling", "POWER": "Power",
    "PRELU": "PReLU", "RELU": "ReLU", "RESHAPE": "Reshape", "SIGMOID": "Sigmoid",
    "SIGMOID_CROSS_ENTROPY_LOSS": "SigmoidCrossEntropyLoss", "SILENCE": "Silence", "SLICE": "Slice",
    "SOFTMAX": "Softmax", "SOFTMAX_LOSS": "SoftmaxWithLoss", "SPLIT": "Split", "TANH": "TanH",
    "THRESHOLD": "Threshold", "UPSAMPLE": "Upsample", "WINDOW_DATA": "WindowData",
}  # fmt: skip

# Other spellings of one layer, from forks.
V2_TYPES: dict[str, str] = {
    "DepthwiseConvolution": "ConvolutionDepthwise",
    "DepthWiseConvolution": "ConvolutionDepthwise",
    "HSwish": "HardSwish",
    "Hswish": "HardSwish",
    "Hsigmoid": "HSigmoid",
    "SpatialDropout": "Dropout",
}

_TRAINING = "it belongs to training; give the prototxt for deployment"
_DATA = "it reads a data base; give the prototxt for deployment, with an Input layer"
_RECURRENT = "recurrent layers of Caffe are not supported; export the network as ONNX"

# type -> why, for the sentence that names every layer that cannot be built
REASONS: dict[str, str] = {
    **dict.fromkeys(("LSTM", "RNN", "Recurrent", "LSTMUnit", "Lstm"), _RECURRENT),
    **dict.fromkeys(
        ("Accuracy", "ContrastiveLoss", "EuclideanLoss", "HingeLoss", "InfogainLoss", "MultinomialLogisticLoss",
         "SigmoidCrossEntropyLoss", "SoftmaxWithLoss", "SmoothL1Loss", "MultiBoxLoss", "Loss", "HDF5Output",
         "DetectionEvaluate"), _TRAINING,
    ),
    **dict.fromkeys(
        ("Data", "AnnotatedData", "DummyData", "HDF5Data", "ImageData", "MemoryData", "WindowData"), _DATA,
    ),
    "Python": "it runs Python code of its own; no library can hold that",
    "Im2col": "it is a part of Caffe's convolution and not supported alone",
    "Filter": "the size of its result is known only at run time",
    "Proposal": "the size of its result is known only at run time",
}  # fmt: skip
