package rendertest

// RegionsDefinition is the CRD of a user-defined kind of configuration: Region, of
// regions.example.com, with a default, a bound, and a part without a schema.
const RegionsDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: regions.example.com}
spec:
  group: example.com
  names: {kind: Region, listKind: RegionList, plural: regions, singular: region}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              zone: {type: string}
              level: {type: string, default: info}
              size: {type: integer, maximum: 9}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
`
