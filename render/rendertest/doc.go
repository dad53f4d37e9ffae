// Package rendertest holds the common parts of the tests of render and render/load: YAML for fields, paths into
// results, and a kind of configuration that is not OCM's.
//
// It does not import render, so that render's own tests can use it. It is for tests and not
// linked into the product.
package rendertest
