"""One machine's share of a run: a long flow run that takes shards by claims until none is left."""

from __future__ import annotations

from prefect import flow, get_run_logger, runtime

from blocks.engine import Engine
from blocks.store import Store
from flows.joining import NodeDone, node_config, work
from flows.living import Living
from flows.logs import show_in_run
from flows.ready import check_machine
from flows.saved import use_keys
from reflash.generate.progress import Snapshot
from reflash.report.words import describe


def run_name() -> str:
    """Names a flow run by the run's folder."""
    folder = str(runtime.flow_run.parameters["run"])
    return f"node of {folder.rstrip('/').rsplit('/', 1)[-1]}"


@flow(name="generate-node", flow_run_name=run_name, result_serializer="json")
def generate_node(run: str, engine: Engine | None = None, store: Store | None = None) -> NodeDone:
    """Work on a run beside other machines, which share its folder and nothing else.

    Args:
        run: The run's folder: a path or a URL that this machine can reach.
        engine: A saved engine, in place of the run's own: machines need not be alike.
        store: Saved keys of an object store, where the run's folder is a URL.
    """
    show_in_run()
    use_keys(store)
    config = node_config(run, engine=engine.config() if engine else None)
    check_machine(config)
    bar = Living("node", "progress", pace_s=10.0)
    bar.show(0.0, "engines are starting")

    def tell(now: Snapshot) -> None:
        if bar.due:
            bar.show(round(100 * now.share, 1), describe(now))

    done = work(config, tell)
    get_run_logger().info(f"{done.node} made {done.turns:,} turns, {done.output_tokens:,} tokens")
    return done
