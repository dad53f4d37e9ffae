# The operator's image, named in manifests/operator/deployment.yaml:
#   docker build -t ghcr.io/addonflow/addonflow:v0.1.0 .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /addonflow ./cmd/addonflow

FROM gcr.io/distroless/static:nonroot
COPY --from=build /addonflow /addonflow
USER 65532:65532
ENTRYPOINT ["/addonflow"]
