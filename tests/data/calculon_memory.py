#!/usr/bin/env python3
"""Facts about memory from golden/calculon.json, each distinct memory once:

    tests/data/calculon_memory.py golden/calculon.json > tests/data/calculon_memory.json

A case that does not fit says only what it needs (required_gib), unless another case of the same
memory ran.
"""
import json
import sys

EXECUTION = {
    "hp": "tensor_par", "pp": "pipeline_par", "dp": "data_par", "chunks": "pipeline_interleaving",
    "microbatch_size": "microbatch_size", "recompute": "activation_recompute",
    "optimizer_sharding": "optimizer_sharding", "communication": "tensor_par_comm_type",
    "gather_again": "seq_par_ag_redo", "fused_activation": "fused_activation",
    "weight_offload": "weight_offload", "activation_offload": "activations_offload",
    "optimizer_offload": "optimizer_offload", "training": "training"}
STATS = {
    "weight_bytes": "weight_space", "gradient_bytes": "weight_grad_space",
    "optimizer_bytes": "optimizer_space", "activation_bytes": "act_space",
    "checkpoint_bytes": "act_checkpoint_size", "activation_gradient_bytes": "act_grad_space",
    "required_bytes": "proc_mem_tier1_cap_req", "host_bytes": "proc_mem_tier2_cap_req"}


def facts(golden, case):
    model, execution = golden["models"][case["model"]], case["execution"]
    row = {"model": case["model"].removesuffix(".json"), "layers": model["num_blocks"],
           "hidden": model["hidden"], "heads": model["attn_heads"], "seq": model["seq_size"]}
    assert model["attn_heads"] * model["attn_size"] == model["hidden"]
    assert model["feedforward"] == 4 * model["hidden"]
    row |= {ours: execution[theirs] for ours, theirs in EXECUTION.items()}
    replica = execution["batch_size"] // execution["data_par"]
    row["microbatches"] = replica // execution["microbatch_size"]
    return row


def main():
    golden = json.load(open(sys.argv[1]))
    rows = {}
    for case in golden["cases"]:
        row = facts(golden, case)
        entry = rows.setdefault(json.dumps(row), {"cases": 0, "name": case["name"]})
        entry["cases"] += 1
        if "error" in case["stats"]:
            entry["required_gib"] = float(case["stats"]["error"].split()[3])
        else:
            entry |= {ours: case["stats"][theirs] for ours, theirs in STATS.items()}
    rows = [{"name": entry.pop("name")} | json.loads(row) | entry for row, entry in rows.items()]
    print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")


main()
