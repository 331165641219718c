package io.spikelab.tomcat.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CgroupTest {

    @TempDir
    private Path mount;

    @Test
    void readsVersion2() throws IOException {
        write("lab/cpu.max", "150000 100000\n");
        write("lab/cpu.stat", "usage_usec 9\nnr_periods 40\nnr_throttled 7\nthrottled_usec 2500000\n");
        Cgroup cgroup = cgroup("0::/lab\n");
        assertEquals(1.5, cgroup.quotaCores());
        assertEquals(40, cgroup.periods().getAsDouble());
        assertEquals(7, cgroup.throttledPeriods().getAsDouble());
        assertEquals(2.5, cgroup.throttledSeconds().getAsDouble(), 1e-9);
    }

    @Test
    void readsTheMountWhereTheGroupIsOutsideIt() throws IOException {
        write("cpu.max", "max 100000\n");
        write("cpu.stat", "nr_periods 3\n");
        Cgroup cgroup = cgroup("0::/../elsewhere\n");
        assertEquals(Double.POSITIVE_INFINITY, cgroup.quotaCores());
        assertEquals(3, cgroup.periods().getAsDouble());
        assertEquals(OptionalDouble.empty(), cgroup.throttledSeconds());
    }

    @Test
    void readsVersion1() throws IOException {
        write("cpu/lab/cpu.cfs_quota_us", "50000\n");
        write("cpu/lab/cpu.cfs_period_us", "100000\n");
        write("cpu/lab/cpu.stat", "nr_periods 4\nnr_throttled 2\nthrottled_time 1500000000\n");
        Cgroup cgroup = cgroup("5:memory:/lab\n4:cpu,cpuacct:/lab\n");
        assertEquals(0.5, cgroup.quotaCores());
        assertEquals(2, cgroup.throttledPeriods().getAsDouble());
        assertEquals(1.5, cgroup.throttledSeconds().getAsDouble(), 1e-9);
        write("cpu/lab/cpu.cfs_quota_us", "-1\n");
        assertEquals(Double.POSITIVE_INFINITY, cgroup.quotaCores());
    }

    @Test
    void givesNothingWithoutFilesOrWithOthers() throws IOException {
        Cgroup absent = new Cgroup(mount.resolve("absent"), mount.resolve("absent"));
        assertEquals(Double.POSITIVE_INFINITY, absent.quotaCores());
        assertEquals(OptionalDouble.empty(), absent.periods());
        write("cpu.max", "\n");
        write("cpu.stat", "nr_periods many\n\nnr_throttled\n");
        Cgroup odd = cgroup("0::/\n");
        assertEquals(Double.POSITIVE_INFINITY, odd.quotaCores());
        assertEquals(OptionalDouble.empty(), odd.periods());
        assertEquals(OptionalDouble.empty(), odd.throttledPeriods());
    }

    private Cgroup cgroup(String membership) throws IOException {
        write("membership", membership);
        return new Cgroup(mount, mount.resolve("membership"));
    }

    private void write(String file, String text) throws IOException {
        Path path = mount.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, text);
    }
}
