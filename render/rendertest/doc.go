// Package rendertest is what the tests of rendering and of loading both write in: YAML
// for fields, paths into what came out, and a configuration of a kind that is not OCM's.
//
// It imports nothing of render, so that render's own tests can use it. It is for tests:
// it is not linked into the product.
package rendertest
