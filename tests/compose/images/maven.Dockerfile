FROM spikelab-stand-in-base:bookworm
COPY jdk /opt/java/openjdk
COPY maven /usr/share/maven
# What this machine trusts, and what it has downloaded already: whatever it came from, a mirror say.
COPY cacerts /opt/java/openjdk/lib/security/cacerts
COPY repository /root/.m2/repository
RUN find /root/.m2 -name _remote.repositories -delete
ENV JAVA_HOME=/opt/java/openjdk MAVEN_HOME=/usr/share/maven PATH=/opt/java/openjdk/bin:/usr/share/maven/bin:$PATH
CMD ["mvn"]
