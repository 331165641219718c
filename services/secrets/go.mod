module spikelab/services/secrets

go 1.26.0
