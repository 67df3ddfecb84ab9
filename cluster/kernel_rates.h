#ifndef ORRERY_CLUSTER_KERNEL_RATES_H_
#define ORRERY_CLUSTER_KERNEL_RATES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "support/units.h"

// What kernels make of a device's data sheet. Each figure is of a device and an element type, none
// of a model or a run: docs/kernels.md tells what they were fitted on and how well they predict;
// cluster/rate_figures.h has each one's name in cluster files, and its range.

namespace orrery::cluster {

/// What is left of the efficiency of products whose rows do not begin at multiples of 16 bytes:
/// libraries have slower kernels for those.
struct Unaligned {
  double even;   // rows at multiples of 4 bytes
  double odd;    // at none
  double batch;  // of many matrices, whatever their rows

  friend bool operator==(const Unaligned&, const Unaligned&) = default;
};

/// Of matrix products of operands of one type.
struct ProductRates {
  /// Share of the peak that the largest tiles reach, in a burst.
  double efficiency;
  /// Share of the peak of memory.
  double memory;
  /// What a block does before and after its loop over k, as so many elements of k.
  double fill;
  /// How much of a last, partly filled wave of blocks counts: 1, as much as a full one; 0, none.
  double wave_weight;
  /// What small tiles lose: this much of the time for each time more that they read per product.
  double tile_penalty;
  /// The least that a block takes for 128 bytes of each row and column of its tile: its loop waits
  /// for memory.
  Duration step;
  Unaligned unaligned;

  friend bool operator==(const ProductRates&, const ProductRates&) = default;
};

/// What a class of fused attention reaches, in training.
struct AttentionRates {
  double efficiency;         // share of the peak of products, of a head of 128 and many keys
  double backward;           // of its backward, times that
  double fill;               // what a tile of queries takes besides its keys, in keys
  double backward_fill;      // likewise, backward
  double width_power;        // a head of another width reaches (narrower / wider) to this power
  bool whole_heads = false;  // a block takes all queries of a head, not a tile of them

  friend bool operator==(const AttentionRates&, const AttentionRates&) = default;
};

/// Those of each class of cost_models/kernels/kernel_choice.h.
struct AttentionClassRates {
  AttentionRates cudnn, flash3, flash2, flash1, triton, cudnn8;

  friend bool operator==(const AttentionClassRates&, const AttentionClassRates&) = default;
};

/// Of all kernels of a device. So many fields: a figure each.
struct KernelRates {
  std::string source;  // of the figures; of an assumption, where no kernel was measured
  bool measured;       // on this device or one with the same cores; or a file says them
  int cores;           // that run a block at a time: streaming multiprocessors
  Duration start;      // from one kernel of a captured graph to the next
  /// Clock of training over the clock of a burst: power decides, over milliseconds.
  double sustained;
  /// The same of products of 8 bits, which may draw more.
  double sustained_quarter;
  /// The same of products of 4 bits.
  double sustained_eighth;
  /// How much longer the slowest of twice as many devices takes.
  double straggling;
  ProductRates half;     // 2-byte operands, and wider ones
  ProductRates quarter;  // 1-byte operands
  ProductRates blocks;   // likewise, with a scale for each 128 elements of k
  ProductRates eighth;   // 4-bit operands; those of 1 byte where a device has none
  AttentionClassRates attention;
  /// 8-bit products want both operands with k in a row (Hopper's do), so that copies are made in
  /// both orders: one for the product forward, one for those of backward.
  bool copies_both_ways;
  double other_products;  // share of the peak that convolutions reach
  /// Share of the memory's peak that kernels along a sequence reach: the convolution and the scan
  /// of a Mamba-2 layer, of which each reads what the one before has written.
  double scan;
  /// Share of the peak of memory that kernels reach which sort rows: to experts and back.
  double gather;

  friend bool operator==(const KernelRates&, const KernelRates&) = default;
};

/// Those of an assumption, between the devices that were measured. It says so.
const KernelRates& AssumedKernelRates();

/// Those of the device of cluster/device.cc that has this name; or those of the assumption.
const KernelRates& PresetKernelRates(absl::string_view device);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_KERNEL_RATES_H_
