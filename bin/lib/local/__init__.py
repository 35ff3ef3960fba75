"""The parts of a deployment as plain processes of this machine: for bin/cluster, bin/demo and the tests."""
