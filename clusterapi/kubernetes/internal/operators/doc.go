// Package operators proves that package olm/install/sources installs operators on a real
// API server. It has nothing but tests, in a separate module for their dependencies.
package operators
