"""What the words of the page mean."""

from __future__ import annotations

from html import escape

from fedkin.metrics import METRICS, of_task
from fedkin.report.html import Section, titled
from fedkin.report.study import Study
from fedkin.report.words import DEFINITIONS

MEASURES = {  # docs/metrics.md says more
    "accuracy": "The share of test samples whose class is right.",
    "balanced_accuracy": "The share of each class that is recognised, averaged over the classes that a client has.",
    "auc": "The chance that a sample of a class has a larger score than one of another class; not defined for a client "
    "whose test samples have one class only.",
    "f1": "The harmonic mean of precision and recall: of the second of two classes, or averaged over more classes.",
    "log_loss": "The mean negative logarithm of the probability given to the right class. Lower is better.",
    "calibration_error": "How far confidence and accuracy are apart, over 15 bins of confidence. Lower is better.",
    "r2": "The share of the target's variance at a client that the predictions explain: 1 is perfect, 0 is as good as "
    "the mean.",
    "rmse": "The root of the mean squared error, in the target's own unit. Lower is better.",
}


def definitions(study: Study) -> Section:
    said = {METRICS[name].label: MEASURES[name] for name in of_task(study.metric.task)} | DEFINITIONS
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in said.items())
    return Section(titled("What the words mean", f'<dl class="words">{words}</dl>'))
