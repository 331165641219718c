FROM spikelab-stand-in-base:bookworm
COPY go /usr/local/go
ENV PATH=/usr/local/go/bin:$PATH GOPATH=/go GOTOOLCHAIN=local
WORKDIR /go
