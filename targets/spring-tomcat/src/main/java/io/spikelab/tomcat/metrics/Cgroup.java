package io.spikelab.tomcat.metrics;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.stream.Stream;

/**
 * CPU limit and throttling of the control group this process is in, version 2 or 1 (kernel documentation:
 * cgroup-v2, "CPU Interface Files"; sched-bwc). A file that is not there, or not as expected, gives no value.
 */
final class Cgroup {

    private final Optional<Path> version2;
    private final Optional<Path> version1;

    /**
     * @param mount where control groups are mounted, {@code /sys/fs/cgroup}
     * @param membership this process's groups, {@code /proc/self/cgroup}
     */
    Cgroup(Path mount, Path membership) {
        List<String> groups = lines(membership);
        this.version2 = folder(groups, "0::", mount);
        this.version1 = groups.stream().map(line -> line.split(":", 3))
                .filter(parts -> parts.length == 3 && List.of(parts[1].split(",")).contains("cpu")).findFirst()
                .flatMap(parts -> inside(mount.resolve("cpu"), parts[2]));
    }

    static Cgroup ofThisProcess() {
        return new Cgroup(Path.of("/sys/fs/cgroup"), Path.of("/proc/self/cgroup"));
    }

    OptionalDouble periods() {
        return stat("nr_periods", 1, "nr_periods", 1);
    }

    OptionalDouble throttledPeriods() {
        return stat("nr_throttled", 1, "nr_throttled", 1);
    }

    OptionalDouble throttledSeconds() {
        return stat("throttled_usec", 1e-6, "throttled_time", 1e-9);
    }

    /** Cores' worth of CPU time the group may use, infinite without a limit. */
    double quotaCores() {
        Optional<String> line = version2.flatMap(folder -> lines(folder.resolve("cpu.max")).stream().findFirst());
        String[] quotaAndPeriod = line.map(text -> text.trim().split(" ")).orElseGet(this::version1Quota);
        try {
            double quota = Double.parseDouble(quotaAndPeriod[0]);
            return quota <= 0 ? Double.POSITIVE_INFINITY : quota / Double.parseDouble(quotaAndPeriod[1]);
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException unlimited) {
            return Double.POSITIVE_INFINITY;
        }
    }

    private String[] version1Quota() {
        return Stream.of("cpu.cfs_quota_us", "cpu.cfs_period_us")
                .flatMap(file -> version1.stream().flatMap(folder -> lines(folder.resolve(file)).stream()))
                .toArray(String[]::new);
    }

    private OptionalDouble stat(String key2, double unit2, String key1, double unit1) {
        OptionalDouble value = version2.map(folder -> stat(folder, key2, unit2)).orElse(OptionalDouble.empty());
        return value.isPresent() ? value
                : version1.map(folder -> stat(folder, key1, unit1)).orElse(OptionalDouble.empty());
    }

    private static OptionalDouble stat(Path folder, String key, double unit) {
        return lines(folder.resolve("cpu.stat")).stream().map(line -> line.split(" "))
                .filter(parts -> parts.length == 2 && parts[0].equals(key) && parts[1].matches("[0-9]{1,18}"))
                .mapToDouble(parts -> Long.parseLong(parts[1]) * unit).findFirst();
    }

    private static Optional<Path> folder(List<String> groups, String prefix, Path mount) {
        return groups.stream().filter(line -> line.startsWith(prefix)).findFirst()
                .flatMap(line -> inside(mount, line.substring(prefix.length())));
    }

    /** In a container the named group may lie outside what is mounted; the mount is then the group itself. */
    private static Optional<Path> inside(Path mount, String group) {
        Path folder = mount.resolve(group.replaceFirst("^/+", "")).normalize();
        return Stream.of(folder, mount).filter(path -> path.startsWith(mount) && Files.isDirectory(path)).findFirst();
    }

    private static List<String> lines(Path file) {
        try {
            return Files.readAllLines(file);
        } catch (IOException | RuntimeException absent) {
            return List.of();
        }
    }
}
