"""A ServerApp as any other of Flower's, but for the line with the strategy."""

from client_app import network
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp

import fedkin as fk
from fedkin.flower import Strategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    rounds, rate = context.run_config["num-server-rounds"], context.run_config["learning-rate"]
    strategy = Strategy(fk.methods.fedavg_mcsa(), min_available_nodes=3)  # was: FedAvg(min_available_nodes=3)
    first = ArrayRecord(network().state_dict())
    strategy.start(grid, first, num_rounds=rounds, train_config=ConfigRecord({"lr": rate}))
