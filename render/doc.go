// Package render turns the content of an add-on and a cluster into ManifestWorks, and reads
// from their status whether the content runs:
//
//	Content + Cluster --NewRenderer, Render--> objects --Works--> ManifestWorks
//	ManifestWorks --Observe--> what the cluster runs and whether it is verified
//
// Package render/load, which uses this package, reads and checks the content of commits. This package uses
// render/variable ({{NAME}}), render/strict (what Go types and API servers refuse), render/flaw (an error in a field)
// and render/chart.
//
// The way of one rendering through the files:
//
//	content.go       what an AddOnRevision holds; digest.go, encode.go, spechash.go
//	renderer.go      one for each revision: what clusters share is parsed once
//	  inputs.go        which template and configurations a cluster gets: hubconfig.go,
//	                   merge.go; read once: template.go, agentconfig.go, package*.go
//	  builder.go       the manifests of one rendering, in this order:
//	    variables.go     values: *_variables.go; substitute.go puts them in
//	    package_*.go     or a chart renders them
//	    pods.go          what OCM decorates: environment, images, nodeplacement, proxy,
//	                     resources, volumes; namespace.go
//	    options.go       updates and feedback, per object; feedback.go
//	  rendering.go     the result and its digest
//	works.go         its ManifestWorks: split.go; hosting.go for those of a hosting cluster,
//	                 hooks.go for those of pre-delete hooks
//	  compare.go       whether a work must be written; marks.go, finalizers.go
//	observe.go       what works say: prober.go, health.go, availability.go,
//	                 checks.go and cel.go for health policies; health_policy.go finds
//	                 flaws in the policies
//	check.go         everything wrong with content, as a Finding, before a cluster has it
//
// Everything here is a function of its arguments: no client, no clock, no logger, no
// files, no environment. Inputs are never changed; results are sorted.
package render
