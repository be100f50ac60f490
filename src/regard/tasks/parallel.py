"""One process or many, through lightning's Fabric: devices, precision, DDP and FSDP2 under plain torchrun.

Whole tensors go in and out, however they are spread, so a run that began on one machine goes on on eight.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from regard.core.shapes import InputError, MissingError
from regard.tasks.config import Machine

PATIENCE = timedelta(seconds=50)  # for a process that answers no more


def start(machine: Machine) -> Any:
    """A Fabric of all processes that torchrun started, or of this one."""
    try:
        from lightning.fabric import Fabric
        from lightning.fabric.strategies.ddp import DDPStrategy
        from lightning.fabric.strategies.model_parallel import ModelParallelStrategy
    except ImportError:
        raise MissingError("training needs lightning; pip install 'regard[tasks]'") from None
    for name in ("lightning.fabric", "lightning.fabric.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*lightning.*", module="lightning.*")
    device = machine.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    elif device == "cuda" and not torch.cuda.is_available():
        raise InputError("machine.device='cuda', but torch sees no such device; take 'cpu' or 'auto'")
    everyone, here = (int(os.environ.get(name, 1)) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    backend = "nccl" if device == "cuda" else "gloo"
    strategy: Any = "auto"
    if everyone > 1 and machine.parallel == "ddp":
        strategy = DDPStrategy(process_group_backend=backend, timeout=PATIENCE)
    elif everyone > 1:
        strategy = ModelParallelStrategy(
            parallelize_fn=shard,
            data_parallel_size=everyone,
            tensor_parallel_size=1,
            process_group_backend=backend,
            timeout=PATIENCE,
        )
    precision = "bf16-mixed" if machine.precision == "bfloat16" else "32-true"
    fabric = Fabric(
        accelerator=device, devices=here, num_nodes=everyone // here, strategy=strategy, precision=precision
    )
    fabric.launch()
    return fabric


def shard(network: nn.Module, mesh: Any) -> nn.Module:
    """FSDP2: each layer of a stack is gathered when it is needed, and spread again after."""
    from torch.distributed.fsdp import fully_shard

    mesh = mesh["data_parallel"]
    for module in network.modules():
        if isinstance(module, nn.ModuleList) and len(module) > 1:
            for layer in module:
                if any(True for _ in layer.parameters()) and not isinstance(layer, nn.Linear):
                    fully_shard(layer, mesh=mesh)
    fully_shard(network, mesh=mesh)
    return network


def bare(network: nn.Module) -> nn.Module:
    """The network itself, without what Fabric and DDP put around it."""
    while True:
        inner = getattr(network, "_forward_module", None) or (
            network.module if isinstance(network, nn.parallel.DistributedDataParallel) else None
        )
        if inner is None:
            return network
        network = inner


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, on the CPU. Every process must ask."""
    full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor  # pyright: ignore
    return full.detach().cpu()


def spread(tensor: Tensor, like: Tensor) -> Tensor:
    """The part of a whole tensor that this process keeps of such a one."""
    if not hasattr(like, "full_tensor"):
        return tensor.to(like.device)
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements)  # pyright: ignore


def together(fabric: Any, *numbers: float) -> list[float]:
    """Sums over the processes, in one round."""
    if fabric.world_size == 1:
        return list(numbers)
    return fabric.all_reduce(torch.tensor(numbers, dtype=torch.float64, device=fabric.device), reduce_op="sum").tolist()


def weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: whole(tensor) for name, tensor in bare(network).state_dict().items()}


def load_weights(network: nn.Module, state: Mapping[str, Tensor]) -> None:
    own = bare(network).state_dict()
    if set(own) != set(state):
        odd = sorted(set(own) ^ set(state))[0]
        raise InputError(f"the checkpoint is of another network: {odd} is not in both; start in an empty folder")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(spread(state[name], tensor))


def optimizer_state(network: nn.Module, optimizer: Optimizer) -> dict[str, dict[str, Any]]:
    """By the names of the parameters, so that it fits however they are spread."""
    found = {}
    for name, parameter in bare(network).named_parameters():
        state = optimizer.state.get(parameter, {})
        found[name] = {key: whole(value) if isinstance(value, Tensor) else value for key, value in state.items()}
    return found


def load_optimizer_state(network: nn.Module, optimizer: Optimizer, state: Mapping[str, Mapping[str, Any]]) -> None:
    for name, parameter in bare(network).named_parameters():
        for key, value in state[name].items():
            if isinstance(value, Tensor) and value.shape == parameter.shape:
                value = spread(value, parameter)
            elif isinstance(value, Tensor) and value.ndim == 0:
                value = value.clone()  # a step count stays where the optimizer keeps it
            optimizer.state[parameter][key] = value


def gradients(network: nn.Module) -> dict[str, Tensor]:
    named = bare(network).named_parameters()
    return {name: whole(parameter.grad) for name, parameter in named if parameter.grad is not None}


def load_gradients(network: nn.Module, state: Mapping[str, Tensor]) -> None:
    for name, parameter in bare(network).named_parameters():
        if name in state:
            parameter.grad = spread(state[name], parameter)
