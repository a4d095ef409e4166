"""The wrong changes that `mutations.py` tries in engines: gradients that are computed without autograd."""

from __future__ import annotations

from mutation_table import Mutation

LSTM = "engines/test_fused_lstm.py"

ENGINES = [
    Mutation("lstm-c-forgets-c", "by_c.mul_(f[:, t])", "by_c.mul_(0)", LSTM),
    Mutation("lstm-c-kept-whole", "by_c.mul_(f[:, t])", "by_c.mul_(1)", LSTM),
    Mutation("lstm-c-without-h", "by_c.addcmul_(by_h, c_by_h[:, t])", "by_c.add_(by_h)", LSTM),
    Mutation("lstm-h-without-gates", "torch.baddbmm(d[:, t - 1], found[:, t], recurrent)", "d[:, t - 1].clone()", LSTM),
    Mutation("lstm-h-of-the-layer-above", "torch.baddbmm(d[:, t - 1],", "torch.baddbmm(0 * d[:, t - 1],", LSTM),
    Mutation("lstm-input-gate", "torch.cat([g, c[:, :-1], tanh_c, i]", "torch.cat([i, c[:, :-1], tanh_c, i]", LSTM),
    Mutation("lstm-forget-gate", "torch.cat([g, c[:, :-1],", "torch.cat([g, c[:, 1:],", LSTM),
    Mutation("lstm-output-gate", "each[:, t, :, 2].mul_(by_h)", "each[:, t, :, 2].mul_(by_c)", LSTM),
    Mutation("lstm-candidate", "each[:, t, :, 3].mul_(by_c)", "each[:, t, :, 3].mul_(0)", LSTM),
    Mutation(
        "lstm-slope-of-sigmoid",
        "sigmoids.copy_(torch.ops.aten.sigmoid_backward(sigmoids, gates[..., : 3 * hidden]))",
        "pass",
        LSTM,
    ),
    Mutation("lstm-slope-of-tanh", "last.copy_(torch.ops.aten.tanh_backward(last, g))", "pass", LSTM),
    Mutation("lstm-padding-has-a-gradient", "found.mul_(begun)", "pass", LSTM),
    Mutation("lstm-padding-is-read", "gates.mul_(begun)", "pass", LSTM),
    Mutation(
        "lstm-state-of-now", "Product(left, h[:, :-1].flatten(1, 2))", "Product(left, h[:, 1:].flatten(1, 2))", LSTM
    ),
    Mutation("lstm-onednn-padding-is-read", "shutting[:hidden] = SHUT", "shutting[:0] = SHUT", LSTM),
    Mutation("lstm-onednn-gates", "swapped(value)[None] for value in found", "value[None] for value in found", LSTM),
    Mutation("lstm-onednn-saves-nothing", "with torch.enable_grad(): # else oneDNN", "with torch.no_grad(): #", LSTM),
    Mutation("lstm-all-states-are-read", "d[:, -1] = by_last # the head", "d[:] = by_last[:, None] # the head", LSTM),
    Mutation("lstm-tables-joined", "torch.arange(len(table)) * table.shape[1]", "torch.arange(len(table)) * 0", LSTM),
    Mutation(
        "lstm-padding-not-skipped", "tokens[:, int((tokens != PADDING)", "tokens[:, 0 * int((tokens != PADDING)", LSTM
    ),
    Mutation("lstm-times-of-others", "if not self.cells.together: # else the number", "if True: #", LSTM),
    Mutation("lstm-a-users-own", "type(module) is not LSTM or", "not isinstance(module, LSTM) or", LSTM),
    Mutation("lstm-frozen", "{name for name, _ in module.named_parameters()} != set(trained)", "False", LSTM),
    Mutation("lstm-scored-by-its-module", "isinstance(self.fused, FusedLSTM) and not", "False and not", LSTM),
    Mutation("lstm-not-differentiable", "FusedLSTM) and not torch.is_grad_enabled()", "FusedLSTM)", LSTM),
    Mutation("lstm-memory-returned", "torch.empty(KEPT,", "torch.empty(0,", LSTM),
    Mutation("lstm-memory-not-asked-for", "keep_freed_memory() return Looped()", "return Looped()", LSTM),
    Mutation("rows-without-scale", "found.vectors, alpha=scale)", "found.vectors)", LSTM),
    Mutation("rows-forget-to-keep", "if keep != 1.0: value.mul_(keep)", "if False: value.mul_(keep)", LSTM),
]
