package org.debian.gradle.plugin;

import java.util.HashMap;
import java.util.Map;
import org.debian.maven.repo.Dependency;
import org.debian.maven.repo.DependencyRule;
import org.debian.maven.repo.DependencyRuleSetFiles;
import org.debian.maven.repo.DependencyRuleSetFiles.RulesType;

/**
 * Maps each dependency to the version that Debian has of it, in place of Debian's own class of this
 * name, which says so on the console a hundred times a build and reads rules out of the project.
 */
public final class MavenResolverHook {
    private static final MavenResolverHook INSTANCE = new MavenResolverHook();

    private final DependencyRuleSetFiles rules = new DependencyRuleSetFiles();

    private MavenResolverHook() {
        rules.addDefaultRules();
    }

    public static MavenResolverHook getInstance() {
        return INSTANCE;
    }

    public Map<String, String> rewrite(String group, String artifact, String version, String type, String classifier) {
        Dependency wanted = new Dependency(group, artifact, type, version, "compile", false, classifier, null);
        Dependency found = resolve(wanted);
        Map<String, String> coordinates = new HashMap<>();
        coordinates.put("groupId", found.getGroupId());
        coordinates.put("artifactId", found.getArtifactId());
        coordinates.put("version", found.getVersion());
        coordinates.put("type", found.getType());
        coordinates.put("classifier", found.getClassifier());
        return coordinates;
    }

    private Dependency resolve(Dependency wanted) {
        String version = wanted.getVersion();
        if (version.endsWith(".x") || version.equals("debian")) {
            return wanted;
        }
        for (DependencyRule rule : rules.get(RulesType.RULES).getRules()) {
            if (rule.matches(wanted)) {
                return rule.apply(wanted);
            }
        }
        return wanted;
    }
}
