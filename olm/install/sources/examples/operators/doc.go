// Command operators installs operators into a cluster in memory, and lists every object that
// a real one would get from their bundles. It follows docs/olm.md without a cluster.
//
//	go run . -index registry.example/index:v4.19 mesh tracing@beta
//	go run . -index registry.example/index:v4.19 -mirror mirror/ mesh
//	go run . -registry 127.0.0.1:50051 mesh
//
// An argument is PACKAGE[@CHANNEL], without a channel the default one. Catalogs come from an
// image or a gRPC registry, bundles from the registries in their pull specs or from a mirror
// on disk.
//
// The exit code is 0 when all are installed, 1 when one is not, 2 when the command line is
// wrong, 3 when something cannot be read.
package main
