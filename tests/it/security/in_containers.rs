//! The hostile cases that apply to containers as well, with every run in a container.

use crate::harness::{need_docker, with_docker};

macro_rules! in_containers {
    ($($module:ident: $($case:ident),+;)+) => {
        $($(
            #[test]
            fn $case() {
                if need_docker() {
                    with_docker(super::$module::$case);
                }
            }
        )+)+
    };
}

in_containers! {
    cross_run:
        h121_files_of_a_run_are_removed_with_it,
        h122_concurrent_runs_have_separate_files,
        h123_kernel_objects_are_removed_after_each_run_of_a_session,
        h124_a_skill_cannot_change_itself,
        h126_a_skill_sees_no_other_skill;
    environment_and_descriptors:
        h056_no_variable_of_the_host_is_visible;
    exhaustion:
        h107_a_memory_bomb_is_reported_as_memory,
        h109_a_spinning_run_does_not_starve_others,
        h110_cpu_and_wall_limits_are_reported_separately,
        h111_a_full_disk_ends_the_script,
        h112_inodes_run_out_inside_only,
        h113_descriptors_run_out_inside_only,
        h114_ipc_is_limited_and_removed_afterwards,
        h115_a_flood_of_output_is_truncated_without_using_memory,
        h116_unread_input_does_not_block_the_run,
        h117_unusual_timeouts_are_met_or_refused,
        h118_concurrent_runs_do_not_affect_each_other;
    filesystem_reach:
        h001_secrets_of_the_host_are_absent,
        h002_state_and_other_skills_are_absent,
        h003_the_system_and_the_skill_cannot_be_written,
        h004_a_read_only_mount_stays_read_only,
        h007_files_cannot_be_opened_by_handle,
        h008_device_nodes_cannot_be_made;
    interface_traversal:
        h017_destinations_that_leave_the_workspace_are_refused,
        h018_a_link_in_the_skill_is_not_followed_by_inputs,
        h019_occupied_destinations_are_refused,
        h020_unusual_names_are_kept_byte_for_byte_or_refused,
        h021_arguments_with_a_dash_are_data,
        h022_arguments_do_not_pass_through_a_shell,
        h023_globs_stay_in_the_workspace_and_are_matched_quickly,
        h025_a_working_directory_stays_in_the_workspace,
        h026_variables_reach_the_script_only;
    kernel_interfaces:
        h048_kernel_secrets_are_masked,
        h049_kernel_settings_cannot_be_written,
        h051_sysfs_is_absent,
        h052_devices_of_the_machine_are_absent,
        h053_the_kernel_log_cannot_be_read,
        h055_a_crash_leaves_no_core_dump;
    network:
        h096_no_packet_leaves_the_sandbox,
        h097_listeners_of_the_host_are_unreachable,
        h098_metadata_services_are_unreachable,
        h099_abstract_sockets_do_not_cross_the_sandbox,
        h100_sockets_in_the_hosts_directories_are_absent;
    output_collection:
        h029_symlink_output_is_refused,
        h030_an_output_directory_that_is_a_link_is_not_followed,
        h033_a_fifo_does_not_block_the_collection,
        h034_special_files_are_refused_by_kind,
        h035_a_sparse_file_is_never_read_into_memory,
        h037_the_number_of_collected_files_is_bounded,
        h040_unusual_modes_are_not_copied,
        h040_the_workspaces_own_directories_are_repaired;
    privileged_calls:
        h080_no_namespace_can_be_created,
        h081_no_namespace_can_be_joined,
        h082_nothing_can_be_mounted,
        h083_keyrings_are_inaccessible,
        h084_privileged_calls_fail_without_killing_the_caller,
        h085_foreign_calling_conventions_do_not_bypass_the_filter,
        h088_the_clock_cannot_be_set,
        h089_the_host_name_cannot_be_set,
        h090_no_capability_is_held_or_gained,
        h091_control_groups_are_inaccessible,
        h093_no_input_can_be_injected_into_the_callers_terminal,
        h094_cached_pages_of_the_host_cannot_be_changed,
        h095_unneeded_socket_families_are_refused;
    processes:
        h066_a_fork_bomb_ends_at_the_limit,
        h067_threads_count_as_processes,
        h068_a_script_that_ignores_signals_is_killed_at_the_timeout,
        h069_a_daemon_dies_with_its_run,
        h070_a_background_child_that_holds_the_output_does_not_delay_the_end,
        h071_a_stopped_script_is_killed_at_the_timeout,
        h075_setuid_programs_give_no_privileges,
        h076_file_capabilities_are_ignored,
        h078_killing_skillbox_kills_the_script;
    text_and_reporting:
        h131_terminal_escapes_are_kept_in_json_and_escaped_in_text,
        h132_forged_output_does_not_change_the_report,
        h133_invalid_utf8_is_replaced_and_reported,
        h134_exit_codes_signals_and_timeouts_are_distinguished,
        h136_long_messages_are_bounded;
}
