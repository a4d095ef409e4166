"""The papers of the methods."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """Where a method was published. `arxiv` is its number there, and `page` our page about how we read it."""

    title: str
    authors: str
    venue: str
    year: int
    arxiv: str | None = None
    page: str | None = None

    def __str__(self) -> str:
        where = f"{self.venue} {self.year}" + (f", arXiv:{self.arxiv}" if self.arxiv else "")
        return f"{self.authors}: {self.title}. {where}."


RIVALS = "docs/papers/rivals.md"

FEDAVG = Paper(
    "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    "Brendan McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Agüera y Arcas",
    "AISTATS",
    2017,
    "1602.05629",
)
FEDPROX = Paper(
    "Federated Optimization in Heterogeneous Networks",
    "Tian Li, Anit Kumar Sahu, Manzil Zaheer, Maziar Sanjabi, Ameet Talwalkar, Virginia Smith",
    "MLSys",
    2020,
    "1812.06127",
)
FEDMCSA = Paper(
    "FedMCSA: Personalized Federated Learning via Model Components Self-Attention",
    "Qi Guo, Yong Qi, Saiyu Qi, Di Wu, Qian Li",
    "Neurocomputing",
    2023,
    "2208.10731",
    "docs/papers/fedmcsa.md",
)
FEDACS = Paper(
    "Personalized Federated Learning with Attention-based Client Selection",
    "Zihan Chen, Jundong Li, Cong Shen",
    "ICASSP",
    2024,
    "2312.15148",
    "docs/papers/fedacs.md",
)
FEDAMP = Paper(
    "Personalized Cross-Silo Federated Learning on Non-IID Data",
    "Yutao Huang, Lingyang Chu, Zirui Zhou, Lanjun Wang, Jiangchuan Liu, Jian Pei, Yong Zhang",
    "AAAI",
    2021,
    "2007.03797",
)
PFEDGRAPH = Paper(
    "Personalized Federated Learning with Inferred Collaboration Graphs",
    "Rui Ye, Zhenyang Ni, Fangzhao Wu, Siheng Chen, Yanfeng Wang",
    "ICML",
    2023,
    page=RIVALS,
)
FEDDWA = Paper(
    "FedDWA: Personalized Federated Learning with Dynamic Weight Adjustment",
    "Jiahao Liu, Jiang Wu, Jinyu Chen, Miao Hu, Yipeng Zhou, Di Wu",
    "IJCAI",
    2023,
    "2305.06124",
    RIVALS,
)
CFL = Paper(
    "Clustered Federated Learning: Model-Agnostic Distributed Multitask Optimization Under Privacy Constraints",
    "Felix Sattler, Klaus-Robert Müller, Wojciech Samek",
    "IEEE Transactions on Neural Networks and Learning Systems",
    2021,
    "1910.01991",
    RIVALS,
)
PFEDSIM = Paper(
    "pFedSim: Similarity-Aware Model Aggregation Towards Personalized Federated Learning",
    "Jiahao Tan, Yipeng Zhou, Gang Liu, Jessie Hui Wang, Shui Yu",
    "arXiv",
    2023,
    "2305.15706",
    RIVALS,
)
FEDPER = Paper(
    "Federated Learning with Personalization Layers",
    "Manoj Ghuhan Arivazhagan, Vinay Aggarwal, Aaditya Kumar Singh, Sunav Choudhary",
    "arXiv",
    2019,
    "1912.00818",
    RIVALS,
)
LGFEDAVG = Paper(
    "Think Locally, Act Globally: Federated Learning with Local and Global Representations",
    "Paul Pu Liang, Terrance Liu, Liu Ziyin, Nicholas B. Allen, Randy P. Auerbach, David Brent, Ruslan Salakhutdinov, "
    "Louis-Philippe Morency",
    "arXiv",
    2020,
    "2001.01523",
    RIVALS,
)
FEDREP = Paper(
    "Exploiting Shared Representations for Personalized Federated Learning",
    "Liam Collins, Hamed Hassani, Aryan Mokhtari, Sanjay Shakkottai",
    "ICML",
    2021,
    "2102.07078",
    RIVALS,
)
FEDBABU = Paper(
    "FedBABU: Towards Enhanced Representation for Federated Image Classification",
    "Jaehoon Oh, Sangmook Kim, Se-Young Yun",
    "ICLR",
    2022,
    "2106.06042",
    RIVALS,
)
IFCA = Paper(
    "An Efficient Framework for Clustered Federated Learning",
    "Avishek Ghosh, Jichan Chung, Dong Yin, Kannan Ramchandran",
    "NeurIPS",
    2020,
    "2006.04088",
    RIVALS,
)
FEDFOMO = Paper(
    "Personalized Federated Learning with First Order Model Optimization",
    "Michael Zhang, Karan Sapra, Sanja Fidler, Serena Yeung, Jose M. Alvarez",
    "ICLR",
    2021,
    "2012.08565",
    RIVALS,
)
FEDALA = Paper(
    "FedALA: Adaptive Local Aggregation for Personalized Federated Learning",
    "Jianqing Zhang, Yang Hua, Hao Wang, Tao Song, Zhengui Xue, Ruhui Ma, Haibing Guan",
    "AAAI",
    2023,
    "2212.01197",
    RIVALS,
)
PFEDME = Paper(
    "Personalized Federated Learning with Moreau Envelopes",
    "Canh T. Dinh, Nguyen H. Tran, Tuan Dung Nguyen",
    "NeurIPS",
    2020,
    "2006.08848",
)
PERFEDAVG = Paper(
    "Personalized Federated Learning with Theoretical Guarantees: A Model-Agnostic Meta-Learning Approach",
    "Alireza Fallah, Aryan Mokhtari, Asuman Ozdaglar",
    "NeurIPS",
    2020,
    "2002.07948",
)
DITTO = Paper(
    "Ditto: Fair and Robust Federated Learning Through Personalization",
    "Tian Li, Shengyuan Hu, Ahmad Beirami, Virginia Smith",
    "ICML",
    2021,
    "2012.04221",
)
APFL = Paper(
    "Adaptive Personalized Federated Learning",
    "Yuyang Deng, Mohammad Mahdi Kamani, Mehrdad Mahdavi",
    "arXiv",
    2020,
    "2003.13461",
)
ADAFL = Paper(
    "Dynamic Attention-based Communication-Efficient Federated Learning",
    "Zihan Chen, Kai Fong Ernest Chong, Tony Q. S. Quek",
    "FTL-IJCAI",
    2021,
    "2108.05765",
    "docs/papers/adafl.md",
)
SCAFFOLD = Paper(
    "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
    "Sai Praneeth Karimireddy, Satyen Kale, Mehryar Mohri, Sashank Reddi, Sebastian Stich, Ananda Theertha Suresh",
    "ICML",
    2020,
    "1910.06378",
)
FEDMIX = Paper(
    "FedMix: Approximation of Mixup under Mean Augmented Federated Learning",
    "Tehrim Yoon, Sumin Shin, Sung Ju Hwang, Eunho Yang",
    "ICLR",
    2021,
    "2107.00233",
)
ACTIVE = Paper(
    "Active Federated Learning",
    "Jack Goetz, Kshitiz Malik, Duc Bui, Seungwhan Moon, Honglei Liu, Anuj Kumar",
    "arXiv",
    2019,
    "1909.12641",
)
SFEDAVG = Paper(
    "Game of Gradients: Mitigating Irrelevant Clients in Federated Learning",
    "Lokesh Nagalapatti, Ramasuri Narayanam",
    "AAAI",
    2021,
    "2110.12257",
)
PFEDRE = Paper(
    "Beyond Random Selection: A Perspective from Model Inversion in Personalized Federated Learning",
    "Zichen Ma, Yu Lu, Wenye Li, Shuguang Cui",
    "ECML PKDD",
    2022,
    page="docs/papers/pfedre.md",
)
KRUM = Paper(
    "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent",
    "Peva Blanchard, El Mahdi El Mhamdi, Rachid Guerraoui, Julien Stainer",
    "NeurIPS",
    2017,
    "1703.02757",
)
YIN = Paper(
    "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates",
    "Dong Yin, Yudong Chen, Kannan Ramchandran, Peter Bartlett",
    "ICML",
    2018,
    "1803.01498",
)

# The first paper has the method, further ones have what it is combined with. () is ours, or nobody's.
PAPERS: dict[str, tuple[Paper, ...]] = {
    "local": (),
    "local_matched": (),
    "pooled": (),
    "fedavg": (FEDAVG,),
    "fedprox": (FEDPROX,),
    "kin": (),
    "kin_light": (),
    "fedavg_prior": (),
    "fedavg_calibrated": (),
    "fedmcsa": (FEDMCSA,),
    "fedmcsa_official": (FEDMCSA,),
    "fedmcsa_without_mcsa": (FEDMCSA,),
    "fedavg_mcsa": (FEDMCSA, FEDAVG),
    "pfedme_mcsa": (FEDMCSA, PFEDME),
    "fedacs": (FEDACS,),
    "fedamp": (FEDAMP,),
    "heurfedamp": (FEDAMP,),
    "pfedgraph": (PFEDGRAPH,),
    "feddwa": (FEDDWA,),
    "cfl": (CFL,),
    "pfedsim": (PFEDSIM,),
    "fedper": (FEDPER,),
    "lgfedavg": (LGFEDAVG,),
    "fedrep": (FEDREP,),
    "fedbabu": (FEDBABU,),
    "ifca": (IFCA,),
    "fedfomo": (FEDFOMO,),
    "fedala": (FEDALA,),
    "pfedme": (PFEDME,),
    "perfedavg": (PERFEDAVG,),
    "ditto": (DITTO,),
    "apfl": (APFL,),
    "adafl": (ADAFL,),
    "attn": (ADAFL,),
    "dyn_fedavg": (ADAFL,),
    "scaffold": (SCAFFOLD,),
    "fedmix": (FEDMIX,),
    "active": (ACTIVE,),
    "sfedavg": (SFEDAVG,),
    "pfedre": (PFEDRE,),
    "pfedre_aligned": (PFEDRE,),
    "pfedre_robust": (PFEDRE,),
    "krum": (KRUM,),
    "multikrum": (KRUM,),
    "trimmed_mean": (YIN,),
    "median": (YIN,),
    "oracle": (),
}
