FROM spikelab-stand-in-base:bookworm
COPY jdk /opt/java/openjdk
COPY java-without-new-options.sh /
ENV JAVA_HOME=/opt/java/openjdk PATH=/opt/java/openjdk/bin:$PATH
# A Java older than the official image's would refuse the options that the target is started with.
RUN java -XX:AOTCache=none --sun-misc-unsafe-memory-access=allow -version \
 || { mv /opt/java/openjdk/bin/java /opt/java/openjdk/bin/java.real \
 && mv /java-without-new-options.sh /opt/java/openjdk/bin/java; }
CMD ["jshell"]
