// Package sample is the add-on that tests roll out where any will do: one Deployment,
// whose image tag says which content runs. It has, too, what such an add-on's agent asks
// the hub for, and a CA that signs it.
package sample
