module spikelab/init

go 1.26.0
