// The part of pocketbuild-events.gradle for Gradle 7.0 and newer. The file's name is read when a
// task ends, not while the build is configured, so it is no input of the configuration cache.

import groovy.json.JsonOutput
import org.gradle.api.provider.Property
import org.gradle.api.services.BuildService
import org.gradle.api.services.BuildServiceParameters
import org.gradle.build.event.BuildEventsListenerRegistry
import org.gradle.tooling.events.FinishEvent
import org.gradle.tooling.events.OperationCompletionListener
import org.gradle.tooling.events.task.TaskFailureResult
import org.gradle.tooling.events.task.TaskFinishEvent
import org.gradle.tooling.events.task.TaskSkippedResult
import org.gradle.tooling.events.task.TaskSuccessResult

abstract class PocketbuildEvents implements BuildService<PocketbuildEvents.Parameters>, OperationCompletionListener {

    interface Parameters extends BuildServiceParameters {
        Property<String> getFile()
        Property<String> getGradleVersion()
    }

    private boolean begun = false

    void onFinish(FinishEvent event) {
        if (!parameters.file.isPresent() || !(event instanceof TaskFinishEvent)) {
            return
        }
        def result = event.result
        def line = [
            at_ms: result.endTime,
            event: 'task_finished',
            task: event.descriptor.taskPath,
            outcome: outcomeOf(result),
            started_ms: result.startTime,
        ]
        if (result instanceof TaskFailureResult) {
            line.causes = result.failures.take(5).collectMany { chain(it) }.take(20)
        }
        write(line)
    }

    private static String outcomeOf(result) {
        if (result instanceof TaskFailureResult) {
            return 'FAILED'
        }
        if (result instanceof TaskSkippedResult) {
            return result.skipMessage ?: 'SKIPPED'
        }
        if (result instanceof TaskSuccessResult) {
            return result.fromCache ? 'FROM-CACHE' : result.upToDate ? 'UP-TO-DATE' : 'SUCCESS'
        }
        'SUCCESS'
    }

    private static List chain(failure) {
        def links = []
        def next = failure
        while (next != null && links.size() < 20) {
            links << [message: (next.message ?: '').take(4000)]
            next = next.causes ? next.causes.first() : null
        }
        links
    }

    private synchronized void write(Map line) {
        new File(parameters.file.get()).withWriterAppend('UTF-8') { out ->
            if (!begun) {
                begun = true
                out << JsonOutput.toJson([at_ms: line.started_ms, event: 'started', gradle: parameters.gradleVersion.get()])
                out << '\n'
            }
            out << JsonOutput.toJson(line) << '\n'
        }
    }
}

gradle.settingsEvaluated { settings ->
    def file = settings.providers.environmentVariable('POCKETBUILD_EVENTS_FILE')
        .orElse(settings.providers.systemProperty('pocketbuild.events.file'))
    def service = gradle.sharedServices.registerIfAbsent('pocketbuildEvents', PocketbuildEvents) {
        it.parameters.file.set(file)
        it.parameters.gradleVersion.set(gradle.gradleVersion)
    }
    gradle.services.get(BuildEventsListenerRegistry).onTaskCompletion(service)
}
