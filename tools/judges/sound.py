"""Sound: is someone speaking (Silero VAD), which notes are played (basic-pitch)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import wave
from functools import lru_cache
from pathlib import Path

import numpy as np

from judges.verdict import Feeds, Run, Verdict

# Silero VAD: input [1, 576] = 64 samples of context and 512 new ones at 16 kHz, sr [] int64, state [2, 1, 128];
# output [1, 1] = probability of speech, stateN [2, 1, 128] = the next state.

_RATE_HZ = 16000
_STEP, _CONTEXT = 512, 64
_SPOKEN = "the quick brown fox jumps over the lazy dog, and then it rests by the river"


def speech_feeds(samples: np.ndarray, state: np.ndarray) -> Feeds:
    """576 samples and the state that the last step left."""
    return {"input": samples[None].astype(np.float32), "sr": np.array(_RATE_HZ, np.int64), "state": state}


@lru_cache(maxsize=1)
def _speech() -> tuple[np.ndarray, bool]:
    """Speech at 16 kHz, -1..1, and whether it is espeak-ng's (else: vowels of a simple model of the throat)."""
    espeak = shutil.which("espeak-ng")
    if espeak is None:
        return _vowels(), False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        subprocess.run([espeak, "-v", "en", "-w", str(path), _SPOKEN], check=True)
        with wave.open(str(path)) as file:
            rate = file.getframerate()
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
    count = int(len(samples) * _RATE_HZ / rate)
    times = np.arange(count) * (rate / _RATE_HZ)
    return np.interp(times, np.arange(len(samples)), samples).astype(np.float32), True


def _vowels(seconds: float = 2.0) -> np.ndarray:
    """Five vowels in turn: pulses of a gliding pitch through three resonances each."""
    formants_hz = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410))
    times = np.arange(int(seconds * _RATE_HZ)) / _RATE_HZ
    pitch_hz = 120 * (1 + 0.15 * np.sin(2 * np.pi * 2.1 * times) + 0.05 * np.sin(2 * np.pi * 5 * times))
    pulses = np.diff(np.floor(np.cumsum(pitch_hz) / _RATE_HZ), prepend=0.0)
    voice, length = np.zeros(len(times)), int(0.18 * _RATE_HZ)
    for start in range(0, len(times), length):
        sound = pulses[start : start + length]
        for formant_hz, width_hz in zip(formants_hz[start // length % 5], (80, 90, 120), strict=True):
            sound = _resonate(sound, formant_hz, width_hz)
        voice[start : start + length] = sound * np.sqrt(np.hanning(len(sound)))
    return (0.3 * voice / np.abs(voice).max()).astype(np.float32)


def _resonate(sound: np.ndarray, frequency_hz: float, width_hz: float) -> np.ndarray:
    """Second-order resonator."""
    radius = np.exp(-np.pi * width_hz / _RATE_HZ)
    feedback = 2 * radius * np.cos(2 * np.pi * frequency_hz / _RATE_HZ)
    out, last, before = np.zeros(len(sound)), 0.0, 0.0
    for i, pulse in enumerate(sound):
        out[i] = pulse + feedback * last - radius * radius * before
        before, last = last, out[i]
    return out * (1 - radius)


def _speech_probabilities(run: Run, samples: np.ndarray) -> np.ndarray:
    """Probability of speech for each 32 ms, the state carried along."""
    state, found = np.zeros((2, 1, 128), np.float32), []
    for chunk in _chunks(samples):
        outputs = run(speech_feeds(chunk, state))
        state = outputs["stateN"]
        found.append(float(outputs["output"].reshape(-1)[0]))
    return np.array(found)


def _chunks(samples: np.ndarray) -> np.ndarray:
    """Return [chunks, 576]: 512 new samples each, and before them the last 64 of the chunk before (first: silence)."""
    padded = np.concatenate([np.zeros(_CONTEXT, np.float32), samples])
    count = len(samples) // _STEP
    return np.stack([padded[i * _STEP : (i + 1) * _STEP + _CONTEXT] for i in range(count)])


def speech_chunks(count: int) -> np.ndarray:
    """Return [count, 576] float32: speech, repeated as often as needed, as Silero VAD takes it in."""
    samples, _ = _speech()
    return _chunks(np.resize(samples, count * _STEP))


def speech_sample(data: Path) -> Feeds:
    """One second into the speech, with a state that is not zero."""
    samples, _ = _speech()
    state = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 1, 128)).astype(np.float32)
    return speech_feeds(samples[_RATE_HZ : _RATE_HZ + _STEP + _CONTEXT], state)


def judge_speech(run: Run, data: Path, quick: bool) -> Verdict:
    """Speech is heard as speech (espeak-ng 0.90 on average, vowels 0.41); silence and faint noise are not (0.02)."""
    samples, spoken = _speech()
    start = _RATE_HZ // 4 if quick else 0
    speech = _speech_probabilities(run, samples[start : start + 12 * _STEP] if quick else samples)
    count = 4 * _STEP if quick else _RATE_HZ
    noise = np.random.default_rng(0).standard_normal(count).astype(np.float32) * np.float32(0.01)
    quiet = [_speech_probabilities(run, x).mean() for x in (np.zeros(count, np.float32), noise)]
    enough = 0.7 if spoken and not quick else 0.3
    source = "espeak-ng" if spoken else "synthetic vowels (espeak-ng is not installed)"
    said = f"{source}: speech {speech.mean():.2f}, silence {quiet[0]:.3f}, noise {quiet[1]:.3f}"
    return Verdict(bool(speech.mean() > enough and max(quiet) < 0.1), said)


# basic-pitch: two seconds at 22050 Hz, [1, 43844, 1]; notes [1, 172, 88] = probability of each piano key in each frame.

_PITCH_RATE_HZ, _PITCH_SAMPLES = 22050, 43844
_NOTES = "StatefulPartitionedCall:1"
_LOWEST_KEY = 21  # MIDI number of A0
# Every recording has a noise floor. Without one the network's logarithm of the spectrum shows the rounding of whoever
# computes the spectrum: onnxruntime and TVM then differ by 6e-4 (measured), and neither is more right.
_NOISE = 0.003
_CHORDS = ((60, 64, 67), (69,), (57, 61, 64), (45,), (52, 59))


def chord_feeds(keys: tuple[int, ...]) -> Feeds:
    """Plucked strings at the given MIDI keys: six harmonics each, fading, and a little noise."""
    times = np.arange(_PITCH_SAMPLES) / _PITCH_RATE_HZ
    sound = np.zeros(_PITCH_SAMPLES)
    for key in keys:
        frequency_hz = 440 * 2 ** ((key - 69) / 12)
        for harmonic in range(1, 7):
            sound += np.sin(2 * np.pi * frequency_hz * harmonic * times) / harmonic**1.5 * np.exp(-times)
    sound *= np.minimum(1, times / 0.01)
    noise = np.random.default_rng(0).standard_normal(_PITCH_SAMPLES)
    samples = (0.5 * sound / np.abs(sound).max() + _NOISE * noise).astype(np.float32)
    return {"serving_default_input_2:0": samples[None, :, None]}


def chord_sample(data: Path) -> Feeds:
    """C major."""
    return chord_feeds(_CHORDS[0])


def judge_chords(run: Run, data: Path, quick: bool) -> Verdict:
    """The keys above 0.4 (mean over time) are those that were played, no more and no fewer."""
    wrong, heard = [], []
    for keys in _CHORDS[:1] if quick else _CHORDS:
        means = run(chord_feeds(keys))[_NOTES].reshape(-1, 88).mean(axis=0)
        found = tuple(int(key) + _LOWEST_KEY for key in np.nonzero(means > 0.4)[0])
        heard.append(found)
        if found != keys:
            wrong.append(f"{keys} as {found}")
    said = f"{len(heard) - len(wrong)} of {len(heard)} chords heard, such as keys {heard[0]}"
    return Verdict(not wrong, said if not wrong else f"{said}; heard {', '.join(wrong)}")
