// Package chromium drives a headless Chromium for tests, by the DevTools protocol over two pipes.
//
// Start runs the program chromium of Debian's package of that name. A Tab loads pages, evaluates
// scripts, and returns screenshots and the accessibility tree, which is what a screen reader gets.
package chromium
