"""collaborate: what does each client get back?"""

from fedkin.collaborate.ahead import Ahead
from fedkin.collaborate.bipartition import Bipartition
from fedkin.collaborate.classifiers import ClassifierSimilarity
from fedkin.collaborate.component_attention import ComponentAttention
from fedkin.collaborate.control import Control
from fedkin.collaborate.graph import CollaborationGraph
from fedkin.collaborate.last_uploads import LastUploads
from fedkin.collaborate.mean import Mean
from fedkin.collaborate.mean_before import MeanBefore
from fedkin.collaborate.mean_of_experts import MeanOfExperts
from fedkin.collaborate.median import Median
from fedkin.collaborate.message_passing import HeuristicMessagePassing, MessagePassing
from fedkin.collaborate.nothing import Nothing
from fedkin.collaborate.offers import Offers
from fedkin.collaborate.several import Several
from fedkin.collaborate.shared import Shared
from fedkin.collaborate.similarity_threshold import SimilarityThreshold
from fedkin.collaborate.trimmed_mean import TrimmedMean

__all__ = [
    "Ahead",
    "Bipartition",
    "ClassifierSimilarity",
    "CollaborationGraph",
    "ComponentAttention",
    "Control",
    "HeuristicMessagePassing",
    "LastUploads",
    "Mean",
    "MeanBefore",
    "MeanOfExperts",
    "Median",
    "MessagePassing",
    "Nothing",
    "Offers",
    "Several",
    "Shared",
    "SimilarityThreshold",
    "TrimmedMean",
]
