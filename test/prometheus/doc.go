// Package prometheus starts a real Prometheus for tests, and gives it traffic to scrape.
//
// Start runs the program prometheus of Debian's package of that name. Traffic has the metrics of
// clusters whose requests fail at a rate that the test chooses, so that a canary can degrade
// under the new content only.
package prometheus
