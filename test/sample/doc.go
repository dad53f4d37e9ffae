// Package sample is the add-on of tests that need any add-on: one Deployment, whose image tag
// identifies the content. It also has the requests of such an add-on's agent, and a CA that
// signs them.
package sample
