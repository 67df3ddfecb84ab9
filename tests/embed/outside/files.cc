// Reads an ONNX file and a cluster file: files MODEL.onnx CLUSTER.textproto
#include <iostream>

#include "cluster/cluster.h"
#include "importer/load_model.h"
#include "importer/onnx.h"
#include "support/status.h"

using namespace orrery;

absl::Status Read(const std::string& model, const std::string& file) {
  ORRERY_ASSIGN_OR_RETURN(const ir::Function imported, importer::ImportOnnx(model));
  ORRERY_ASSIGN_OR_RETURN(const ir::Function loaded, importer::LoadModel({.model = model}));
  ORRERY_ASSIGN_OR_RETURN(const cluster::Cluster cluster, cluster::ParseCluster(file));
  std::cout << imported.op_limit() << " and " << loaded.op_limit() << " ops, " << cluster.size()
            << " devices\n";
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const absl::Status status = Read(argv[1], argv[2]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
