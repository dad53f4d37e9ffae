package gitsource

import "github.com/addonflow/addonflow/api/problem"

// Reasons of the problems Build reports, as the user guide lists them.
const (
	// InvalidYAML: a file cannot be read as YAML, or its meaning is ambiguous.
	InvalidYAML problem.Reason = "InvalidYAML"
	// InvalidEncoding: a file is not UTF-8.
	InvalidEncoding problem.Reason = "InvalidEncoding"
	// InvalidManifest: a document is not a Kubernetes object.
	InvalidManifest problem.Reason = "InvalidManifest"
	// DuplicateObject: two documents declare the same object.
	DuplicateObject problem.Reason = "DuplicateObject"
	// AliasLimitExceeded: YAML aliases make the content much larger than the file.
	AliasLimitExceeded problem.Reason = "AliasLimitExceeded"
	// LimitExceeded: a file, a directory or the whole build is too large.
	LimitExceeded problem.Reason = "LimitExceeded"
	// EncryptedContent: a file is encrypted; AddonFlow does not decrypt.
	EncryptedContent problem.Reason = "EncryptedContent"
	// LFSPointer: the repository holds a pointer to a file, not the file.
	LFSPointer problem.Reason = "LFSPointer"
	// RenderFailed: kustomize refuses to build.
	RenderFailed problem.Reason = "RenderFailed"
	// RemoteResourceDenied: a kustomization reads from outside of the repository.
	RemoteResourceDenied problem.Reason = "RemoteResourceDenied"
	// PluginDenied: a kustomization would run a program.
	PluginDenied problem.Reason = "PluginDenied"
	// PathDenied: a path leads outside of the repository, or to an entry that is not a regular file.
	PathDenied problem.Reason = "PathDenied"
	// PathNotFound: spec.path does not exist in the commit.
	PathNotFound problem.Reason = "PathNotFound"
	// MergeConflict: both commits of a previewed merge changed a file.
	MergeConflict problem.Reason = "MergeConflict"
	// FetchFailed: content of the commit could not be read; the commit is not the cause.
	FetchFailed problem.Reason = "FetchFailed"
)
