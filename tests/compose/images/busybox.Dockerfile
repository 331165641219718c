# hadolint global ignore=DL3008,DL3009,DL4006
FROM spikelab-stand-in-base:bookworm AS debian
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends busybox-static >/dev/null \
 && mkdir -p /busybox/bin /busybox/etc /busybox/tmp /busybox/root && cp /bin/busybox /busybox/bin/ \
 && for applet in $(busybox --list | grep -vx busybox); do ln -s busybox "/busybox/bin/$applet"; done \
 && printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n' >/busybox/etc/passwd \
 && printf 'root:x:0:\nnobody:x:65534:\n' >/busybox/etc/group && chmod 1777 /busybox/tmp
FROM scratch
COPY --from=debian /busybox /
ENV PATH=/bin
CMD ["sh"]
